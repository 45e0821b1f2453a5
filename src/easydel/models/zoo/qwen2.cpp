// Qwen2 (arXiv 2407.10671): Llama with biases on queries, keys and values, and an optional sliding window in its later
// layers.
#include "easydel/models/decoder_keys.h"
#include "easydel/models/family.h"

namespace easydel::models::zoo::qwen2 {
namespace {

std::unique_ptr<Model> build(const ConfigReader& config, nn::Building& building) {
  DecoderSpec spec = read_decoder(config, {.vocabulary = 151936,
                                           .hidden = 4096,
                                           .intermediate = 22016,
                                           .layers = 32,
                                           .heads = 32,
                                           .kv_heads = 32,
                                           .max_positions = 32768});
  spec.qkv_bias = true;
  read_layer_windows(config, spec);
  return build_decoder(std::move(spec), building);
}

}  // namespace

Family family() { return {"qwen2", "model", {"rotary_emb.inv_freq"}, build, false}; }

}  // namespace easydel::models::zoo::qwen2
