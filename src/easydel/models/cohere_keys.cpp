#include "easydel/models/cohere_keys.h"

namespace easydel::models {

DecoderSpec read_cohere(const ConfigReader& config, double theta) {
  DecoderSpec spec = read_decoder(config, {.vocabulary = 256000,
                                           .hidden = 8192,
                                           .intermediate = 22528,
                                           .layers = 40,
                                           .heads = 64,
                                           .max_positions = 8192,
                                           .rope = {.theta = theta},
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
  return spec;
}

}  // namespace easydel::models
