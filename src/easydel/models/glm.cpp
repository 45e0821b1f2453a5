// GLM-4 (arXiv 2406.12793): half of a head turns, by neighbouring pairs; gate and up in one weight.
#include "easydel/models/decoder_keys.h"
#include "easydel/models/family.h"

namespace easydel::models {
namespace {

std::unique_ptr<Model> build(const ConfigReader& config, nn::Building& building) {
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
  return build_decoder(std::move(spec), building);
}

}  // namespace

Family glm() { return {"glm", "model", {"rotary_emb.inv_freq"}, build, false}; }

}  // namespace easydel::models
