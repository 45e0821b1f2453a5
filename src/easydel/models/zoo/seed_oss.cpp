// Seed-OSS: Llama with biases on queries, keys and values, and dropout after each part.
#include "easydel/models/decoder_keys.h"
#include "easydel/models/family.h"

namespace easydel::models::zoo::seed_oss {
namespace {

std::unique_ptr<Model> build(const ConfigReader& config, nn::Building& building) {
  DecoderSpec spec = read_decoder(config, {.vocabulary = 155136,
                                           .hidden = 4096,
                                           .intermediate = 27648,
                                           .layers = 64,
                                           .heads = 80,
                                           .kv_heads = 8,
                                           .head_dim = 128,
                                           .max_positions = 524288,
                                           .padding = 1,
                                           .attention_dropout = 0.1});
  spec.qkv_bias = config.boolean("attention_bias", true);
  spec.output_bias = config.boolean("attention_out_bias", false);
  spec.mlp_bias = config.boolean("mlp_bias", false);
  spec.residual_dropout = config.number("residual_dropout", 0.1);
  return build_decoder(std::move(spec), building);
}

}  // namespace

Family family() { return {"seed_oss", "model", {"rotary_emb.inv_freq"}, build, false}; }

}  // namespace easydel::models::zoo::seed_oss
