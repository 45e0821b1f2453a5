// Arcee (AFM): Llama with a squared ReLU and without a gate.
#include "easydel/models/decoder_keys.h"
#include "easydel/models/family.h"

namespace easydel::models::zoo::arcee {
namespace {

std::unique_ptr<Model> build(const ConfigReader& config, nn::Building& building) {
  DecoderSpec spec = read_decoder(config, {.vocabulary = 32000,
                                           .hidden = 2560,
                                           .intermediate = 18432,
                                           .layers = 32,
                                           .heads = 32,
                                           .max_positions = 4096,
                                           .whole_heads = true,
                                           .epsilon = 1e-5,
                                           .activation = "relu2"});
  spec.qkv_bias = spec.output_bias = config.boolean("attention_bias", false);
  spec.mlp_bias = config.boolean("mlp_bias", false);
  spec.gated = false;
  return build_decoder(std::move(spec), building);
}

}  // namespace

Family family() { return {"arcee", "model", {"rotary_emb.inv_freq"}, build, false}; }

}  // namespace easydel::models::zoo::arcee
