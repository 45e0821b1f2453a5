// Jais 2: Llama with layer norms, a squared ReLU without a gate, and biases.
#include "easydel/models/decoder_keys.h"
#include "easydel/models/family.h"

namespace easydel::models::zoo::jais2 {
namespace {

std::unique_ptr<Model> build(const ConfigReader& config, nn::Building& building) {
  DecoderSpec spec = read_decoder(config, {.vocabulary = 150272,
                                           .hidden = 3328,
                                           .intermediate = 26624,
                                           .layers = 32,
                                           .heads = 26,
                                           .max_positions = 8192,
                                           .whole_heads = true,
                                           .epsilon_key = "layer_norm_eps",
                                           .epsilon = 1e-5,
                                           .activation = "relu2"});
  spec.norm = {.kind = nn::NormKind::layer, .epsilon = spec.norm.epsilon};
  spec.qkv_bias = spec.output_bias = config.boolean("attention_bias", true);
  spec.mlp_bias = config.boolean("mlp_bias", true);
  spec.gated = false;
  return build_decoder(std::move(spec), building);
}

}  // namespace

Family family() { return {"jais2", "model", {"rotary_emb.inv_freq"}, build, false}; }

}  // namespace easydel::models::zoo::jais2
