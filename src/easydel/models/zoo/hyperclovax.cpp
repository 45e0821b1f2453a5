// HyperCLOVA X: Granite with additional norms after each part, and a multiplier on logits.
#include "easydel/models/decoder_keys.h"
#include "easydel/models/family.h"
#include "easydel/models/granite_keys.h"

namespace easydel::models::zoo::hyperclovax {
namespace {

std::unique_ptr<Model> build(const ConfigReader& config, nn::Building& building) {
  DecoderSpec spec = read_decoder(config, {.vocabulary = 32000,
                                           .hidden = 4096,
                                           .intermediate = 11008,
                                           .layers = 32,
                                           .heads = 32,
                                           .max_positions = 2048,
                                           .whole_heads = true});
  const double usual_scale = spec.layers.front().attention.scale;
  read_granite(config, spec);
  spec.mlp_bias = config.boolean("mlp_bias", false);
  spec.logit_multiplier = config.number("logits_scaling", 1.0);
  for (DecoderLayerSpec& layer : spec.layers)
    layer.attention.scale = config.number("attention_multiplier", usual_scale);
  if (config.boolean("use_post_norm", true)) {
    spec.names.after_mixer = "post_norm1";
    spec.names.after_feed = "post_norm2";
  }
  return build_decoder(std::move(spec), building);
}

}  // namespace

Family family() { return {"hyperclovax", "model", {"rotary_emb.inv_freq"}, build, false}; }

}  // namespace easydel::models::zoo::hyperclovax
