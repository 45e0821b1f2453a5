// ERNIE 4.5, dense: Llama with interleaved rotary positions.
#include "easydel/models/decoder_keys.h"
#include "easydel/models/family.h"

namespace easydel::models::zoo::ernie4_5 {
namespace {

std::unique_ptr<Model> build(const ConfigReader& config, nn::Building& building) {
  DecoderSpec spec = read_decoder(config, {.vocabulary = 103424,
                                           .hidden = 1024,
                                           .intermediate = 3072,
                                           .layers = 18,
                                           .heads = 16,
                                           .kv_heads = 2,
                                           .head_dim = 128,
                                           .max_positions = 131072,
                                           .rope = {.theta = 500000.0},
                                           .epsilon = 1e-5,
                                           .padding = 0,
                                           .tied = true});
  spec.rope->interleaved = true;
  spec.qkv_bias = spec.output_bias = spec.mlp_bias = config.boolean("use_bias", false);
  spec.attention_dropout = 0.0;  // transformers ignores the key for this family
  return build_decoder(std::move(spec), building);
}

}  // namespace

Family family() { return {"ernie4_5", "model", {"rotary_emb.inv_freq"}, build, true}; }

}  // namespace easydel::models::zoo::ernie4_5
