// Nemotron-4 (arXiv 2402.16819): layer norms that multiply by 1 + weight, a squared ReLU without a gate, rotary
// positions on half of each head.
#include "easydel/models/decoder_keys.h"
#include "easydel/models/family.h"

namespace easydel::models::zoo::nemotron {
namespace {

std::unique_ptr<Model> build(const ConfigReader& config, nn::Building& building) {
  DecoderSpec spec = read_decoder(config, {.vocabulary = 256000,
                                           .hidden = 6144,
                                           .intermediate = 24576,
                                           .layers = 32,
                                           .heads = 48,
                                           .max_positions = 4096,
                                           .rope = {.partial = 0.5, .reads_partial = true},
                                           .epsilon_key = "norm_eps",
                                           .epsilon = 1e-5,
                                           .activation = "relu2",
                                           .deviation = 0.0134});
  spec.norm = {.kind = nn::NormKind::layer, .epsilon = spec.norm.epsilon, .offset = 1.0};
  spec.qkv_bias = spec.output_bias = config.boolean("attention_bias", false);
  spec.mlp_bias = config.boolean("mlp_bias", false);
  spec.gated = false;
  return build_decoder(std::move(spec), building);
}

}  // namespace

Family family() { return {"nemotron", "model", {"rotary_emb.inv_freq"}, build, false}; }

}  // namespace easydel::models::zoo::nemotron
