// FlexOlmo (arXiv 2507.07024): OLMo 2 with experts in every layer.
#include "easydel/models/family.h"
#include "easydel/models/moe_keys.h"
#include "easydel/models/olmo_keys.h"

namespace easydel::models::zoo::flex_olmo {
namespace {

std::unique_ptr<Model> build(const ConfigReader& config, nn::Building& building) {
  DecoderSpec spec = read_olmo2(config, {.vocabulary = 100352,
                                         .hidden = 4096,
                                         .intermediate = 11008,
                                         .layers = 32,
                                         .heads = 32,
                                         .max_positions = 4096,
                                         .rope = {.theta = 500000.0},
                                         .padding = 100277});
  nn::MoeSpec moe = moe_of(config, spec, integer_of(config, {"num_experts", "num_local_experts"}, 7),
                           config.integer("num_experts_per_tok", 5), spec.intermediate);
  moe.router.normalise = config.boolean("norm_topk_prob", false);
  spec.router_loss = read_router_loss(config, moe.router, 0.01);
  set_experts(spec, moe, all_layers(spec));
  return build_decoder(std::move(spec), building);
}

}  // namespace

Family family() { return {"flex_olmo", "model", {"rotary_emb.inv_freq"}, build, false}; }

}  // namespace easydel::models::zoo::flex_olmo
