// DeepSeek-V2 (arXiv 2405.04434): multi-head latent attention, many small experts chosen within groups, and shared
// experts.
#include <algorithm>

#include "easydel/models/family.h"
#include "easydel/models/mla_keys.h"
#include "easydel/models/moe_keys.h"

namespace easydel::models::zoo::deepseek_v2 {
namespace {

std::unique_ptr<Model> build(const ConfigReader& config, nn::Building& building) {
  DecoderSpec spec = read_latent_decoder(
      config,
      {.vocabulary = 102400, .hidden = 4096, .intermediate = 11008, .layers = 32, .heads = 32, .max_positions = 2048});
  spec.mlp_bias = config.boolean("mlp_bias", false);
  set_mla(spec, read_mla(config, spec, {.q_rank = 1536}));
  nn::MoeSpec moe = moe_of(config, spec, integer_of(config, {"n_routed_experts", "num_experts"}, 64),
                           needed(config, "num_experts_per_tok"), integer_of(config, {"moe_intermediate_size"}, 1407));
  moe.exact_router = true;
  moe.router.factor = config.number("routed_scaling_factor", 1.0);
  const std::string method = config.text("topk_method", "greedy");
  if (method == "group_limited_greedy")
    read_groups(config, moe.router, 1, 1);
  else if (method != "greedy")
    config.refuse_key("topk_method", "'" + method + "' is not known", "known: greedy, group_limited_greedy");
  // Unlike in later families, experts of other groups cannot be chosen at all.
  moe.router.top_k = std::min(moe.router.top_k, moe.router.top_groups * (moe.router.experts / moe.router.groups));
  moe.shared_inner = moe.experts.inner * integer_of(config, {"n_shared_experts"}, 2);
  moe.shared_bias = spec.mlp_bias;
  set_experts(spec, moe, read_sparse_layers(config, spec, 0));
  return build_decoder(std::move(spec), building);
}

}  // namespace

Family family() { return {"deepseek_v2", "model", {"rotary_emb.inv_freq"}, build, false}; }

}  // namespace easydel::models::zoo::deepseek_v2
