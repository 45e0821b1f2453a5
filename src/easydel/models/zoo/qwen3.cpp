// Qwen3 (arXiv 2505.09388): queries and keys are normalized per head.
#include "easydel/models/decoder_keys.h"
#include "easydel/models/family.h"

namespace easydel::models::zoo::qwen3 {
namespace {

std::unique_ptr<Model> build(const ConfigReader& config, nn::Building& building) {
  DecoderSpec spec = read_decoder(config, {.vocabulary = 151936,
                                           .hidden = 4096,
                                           .intermediate = 22016,
                                           .layers = 32,
                                           .heads = 32,
                                           .kv_heads = 32,
                                           .head_dim = 128,
                                           .max_positions = 32768});
  spec.qk_norm = QkNorm::head;
  spec.qkv_bias = spec.output_bias = config.boolean("attention_bias", false);
  read_layer_windows(config, spec);
  return build_decoder(std::move(spec), building);
}

}  // namespace

Family family() { return {"qwen3", "model", {"rotary_emb.inv_freq"}, build, false}; }

}  // namespace easydel::models::zoo::qwen3
