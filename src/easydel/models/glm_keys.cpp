#include "easydel/models/glm_keys.h"

namespace easydel::models {

DecoderSpec read_glm(const ConfigReader& config) {
  DecoderSpec spec = read_decoder(config, {.vocabulary = 151552,
                                           .hidden = 4096,
                                           .intermediate = 13696,
                                           .layers = 40,
                                           .heads = 32,
                                           .kv_heads = 2,
                                           .head_dim = 128,
                                           .max_positions = 131072,
                                           .rope = {.partial = 0.5, .reads_partial = true},
                                           .epsilon = 1.5625e-7,
                                           .padding = 151329});
  spec.names.gate_up = "gate_up_proj";
  spec.rope->interleaved = true;
  spec.qkv_bias = config.boolean("attention_bias", true);
  return spec;
}

}  // namespace easydel::models
