// Gemma (arXiv 2403.08295): scaled embeddings, norms that multiply by 1 + weight, a head size of its own.
#include "easydel/models/family.h"
#include "easydel/models/gemma_keys.h"

namespace easydel::models::zoo::gemma {
namespace {

std::unique_ptr<Model> build(const ConfigReader& config, nn::Building& building) {
  DecoderSpec spec = read_decoder(config, {.vocabulary = 256000,
                                           .hidden = 3072,
                                           .intermediate = 24576,
                                           .layers = 28,
                                           .heads = 16,
                                           .kv_heads = 16,
                                           .head_dim = 256,
                                           .max_positions = 8192,
                                           .activation = "gelu_pytorch_tanh",
                                           .padding = 0,
                                           .tied = true});
  // Old files write "gelu" for the tanh approximation.
  if (spec.activation == ops::Activation::gelu) spec.activation = ops::Activation::gelu_tanh;
  refuse_both_sides(config);
  read_gemma(config, spec);
  return build_decoder(std::move(spec), building);
}

}  // namespace

Family family() { return {"gemma", "model", {"rotary_emb.inv_freq"}, build, true}; }

}  // namespace easydel::models::zoo::gemma
