// LFM2 with experts after the first layers.
#include "easydel/models/family.h"
#include "easydel/models/lfm2_keys.h"
#include "easydel/models/moe_keys.h"

namespace easydel::models::zoo::lfm2_moe {
namespace {

std::unique_ptr<Model> build(const ConfigReader& config, nn::Building& building) {
  DecoderSpec spec = read_lfm2(config, {.vocabulary = 65536,
                                        .hidden = 2048,
                                        .intermediate = 7168,
                                        .layers = 32,
                                        .heads = 32,
                                        .kv_heads = 8,
                                        .max_positions = 128000,
                                        .padding = 0});
  spec.tied = config.boolean("tie_embedding", config.boolean("tie_word_embeddings", true));
  nn::MoeSpec moe =
      moe_of(config, spec, integer_of(config, {"num_experts"}, 32), config.integer("num_experts_per_tok", 4),
             integer_of(config, {"moe_intermediate_size"}, 1792));
  moe.name = "feed_forward";
  moe.router.scoring = ops::Scoring::sigmoid;
  moe.router.normalise = config.boolean("norm_topk_prob", true);
  moe.router.norm_plus = 1e-6;
  moe.router.factor = config.number("routed_scaling_factor", 1.0);
  if (config.boolean("use_expert_bias", true)) moe.router_names.correction = "expert_bias";
  moe.experts.files = nn::ExpertFiles::numbered();
  std::vector<bool> sparse;
  for (size_t i = 0; i < spec.layers.size(); ++i) sparse.push_back(int64_t(i) >= config.integer("num_dense_layers", 2));
  set_experts(spec, moe, sparse);
  return build_decoder(std::move(spec), building);
}

}  // namespace

Family family() { return {"lfm2_moe", "model", {"rotary_emb.inv_freq"}, build, true}; }

}  // namespace easydel::models::zoo::lfm2_moe
