// Helium 1: Llama with interleaved rotary positions; norms scale in fp32.
#include "easydel/models/decoder_keys.h"
#include "easydel/models/family.h"

namespace easydel::models::zoo::helium {
namespace {

std::unique_ptr<Model> build(const ConfigReader& config, nn::Building& building) {
  DecoderSpec spec = read_decoder(config, {.vocabulary = 48000,
                                           .hidden = 2560,
                                           .intermediate = 7040,
                                           .layers = 24,
                                           .heads = 20,
                                           .kv_heads = 20,
                                           .head_dim = 128,
                                           .max_positions = 4096,
                                           .rope = {.theta = 100000.0},
                                           .epsilon = 1e-8,
                                           .padding = 3});
  spec.norm.wide = true;
  spec.rope->interleaved = true;
  spec.qkv_bias = config.boolean("attention_bias", false);
  spec.mlp_bias = config.boolean("mlp_bias", false);
  return build_decoder(std::move(spec), building);
}

}  // namespace

Family family() { return {"helium", "model", {"rotary_emb.inv_freq"}, build, false}; }

}  // namespace easydel::models::zoo::helium
