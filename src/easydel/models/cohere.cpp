// Command R: attention and mlp side by side behind one layer norm, neighbouring pairs turn, logits are scaled.
#include "easydel/models/decoder_keys.h"
#include "easydel/models/family.h"

namespace easydel::models {
namespace {

std::unique_ptr<Model> build(const ConfigReader& config, nn::Building& building) {
  DecoderSpec spec = read_decoder(config, {.vocabulary = 256000,
                                           .hidden = 8192,
                                           .intermediate = 22528,
                                           .layers = 40,
                                           .heads = 64,
                                           .max_positions = 8192,
                                           .rope = {.theta = 500000.0},
                                           .epsilon_key = "layer_norm_eps",
                                           .epsilon = 1e-5,
                                           .padding = 0,
                                           .tied = true});
  spec.norm = {.kind = nn::NormKind::layer, .epsilon = spec.norm.epsilon, .bias = false};
  spec.names.before_feed = "";
  spec.parallel_residual = true;
  spec.rope->interleaved = true;
  spec.qkv_bias = spec.output_bias = config.boolean("attention_bias", false);
  spec.logit_multiplier = config.number("logit_scale", 0.0625);
  if (config.boolean("use_qk_norm", false)) spec.qk_norm = QkNorm::each_head;
  return build_decoder(std::move(spec), building);
}

}  // namespace

Family cohere() { return {"cohere", "model", {"rotary_emb.inv_freq"}, build, true}; }

}  // namespace easydel::models
