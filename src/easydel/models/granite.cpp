// Granite (arXiv 2408.13359): Llama with multipliers on embeddings, residual sums, scores and logits.
#include "easydel/models/decoder_keys.h"
#include "easydel/models/family.h"

namespace easydel::models {
namespace {

std::unique_ptr<Model> build(const ConfigReader& config, nn::Building& building) {
  DecoderSpec spec = read_decoder(
      config,
      {.vocabulary = 32000, .hidden = 4096, .intermediate = 11008, .layers = 32, .heads = 32, .max_positions = 2048});
  spec.qkv_bias = spec.output_bias = config.boolean("attention_bias", false);
  spec.mlp_bias = config.boolean("mlp_bias", false);
  spec.embedding_multiplier = config.number("embedding_multiplier", 1.0);
  spec.residual_multiplier = config.number("residual_multiplier", 1.0);
  spec.logit_multiplier = 1.0 / config.number("logits_scaling", 1.0);
  const double scale = config.number("attention_multiplier", 1.0);
  for (DecoderLayerSpec& layer : spec.layers) layer.scale = scale;
  return build_decoder(std::move(spec), building);
}

}  // namespace

Family granite() { return {"granite", "model", {"rotary_emb.inv_freq"}, build, false}; }

}  // namespace easydel::models
