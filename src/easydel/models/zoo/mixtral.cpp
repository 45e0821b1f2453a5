// Mixtral (arXiv 2401.04088): Mistral with experts in every layer; softmax over all experts, and the weights of the
// chosen ones are normalized.
#include "easydel/models/decoder_keys.h"
#include "easydel/models/family.h"
#include "easydel/models/moe_keys.h"

namespace easydel::models::zoo::mixtral {
namespace {

std::unique_ptr<Model> build(const ConfigReader& config, nn::Building& building) {
  DecoderSpec spec = read_decoder(config, {.vocabulary = 32000,
                                           .hidden = 4096,
                                           .intermediate = 14336,
                                           .layers = 32,
                                           .heads = 32,
                                           .kv_heads = 8,
                                           .max_positions = 131072,
                                           .rope = {.theta = 1e6},
                                           .epsilon = 1e-5});
  for (DecoderLayerSpec& layer : spec.layers) layer.attention.window = read_window(config, 0);
  nn::MoeSpec moe = moe_of(config, spec, integer_of(config, {"num_local_experts", "num_experts"}, 8),
                           config.integer("num_experts_per_tok", 2), spec.intermediate);
  moe.router.normalise = true;
  moe.input_jitter = config.number("router_jitter_noise", 0.0);
  moe.name = "block_sparse_moe";
  moe.experts.files = nn::ExpertFiles::numbered();
  spec.router_loss = read_router_loss(config, moe.router);
  set_experts(spec, moe, all_layers(spec));
  return build_decoder(std::move(spec), building);
}

}  // namespace

Family family() {
  return {"mixtral", "model", {"rotary_emb.inv_freq"}, build, false, {{".block_sparse_moe.", ".mlp."}}};
}

}  // namespace easydel::models::zoo::mixtral
