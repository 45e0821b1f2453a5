// MiniMax-M2: norms over all queries and over all keys, rotary positions on a part of each head; experts with sigmoid
// scores.
#include "easydel/models/decoder_keys.h"
#include "easydel/models/family.h"
#include "easydel/models/moe_keys.h"

namespace easydel::models::zoo::minimax_m2 {
namespace {

std::unique_ptr<Model> build(const ConfigReader& config, nn::Building& building) {
  const int64_t head_dim = config.integer("head_dim", 128), rotary = config.integer("rotary_dim", head_dim);
  DecoderSpec spec = read_decoder(
      config, {.vocabulary = 200064,
               .hidden = 3072,
               .intermediate = 1536,
               .layers = 62,
               .heads = 48,
               .kv_heads = 8,
               .head_dim = 128,
               .max_positions = 196608,
               .rope = {.theta = 5e6, .partial = double(rotary) / double(head_dim), .reads_partial = true}});
  spec.qk_norm = QkNorm::whole;
  nn::MoeSpec moe = moe_of(config, spec, integer_of(config, {"num_local_experts", "num_experts"}, 256),
                           config.integer("num_experts_per_tok", 8), spec.intermediate);
  moe.router.scoring = ops::Scoring::sigmoid;
  moe.router.normalise = true;
  moe.router_names.correction = "e_score_correction_bias";
  moe.input_jitter = config.number("router_jitter_noise", 0.0);
  moe.name = "block_sparse_moe";
  moe.experts.files = nn::ExpertFiles::numbered();
  spec.router_loss = read_router_loss(config, moe.router);
  set_experts(spec, moe, all_layers(spec));
  return build_decoder(std::move(spec), building);
}

}  // namespace

Family family() {
  return {"minimax_m2", "model", {"rotary_emb.inv_freq"}, build, false, {{".block_sparse_moe.", ".mlp."}}};
}

}  // namespace easydel::models::zoo::minimax_m2
