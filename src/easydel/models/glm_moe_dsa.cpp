// GLM-5: the experts of GLM-4.5, attention from short vectors, and an indexer whose pairs are neighbours.
#include "easydel/models/family.h"
#include "easydel/models/mla_keys.h"
#include "easydel/models/moe_keys.h"

namespace easydel::models {
namespace {

// Layers that take the choice of an earlier one.
void refuse_shared_indexers(const ConfigReader& config, int64_t layers) {
  for (const std::string& type : config.texts("indexer_types"))
    if (type != "full") config.refuse_key("indexer_types", "'" + type + "' is not built yet", "built: full");
  if (config.find("indexer_types")) return;
  if (config.find("index_topk_pattern")) config.refuse_key("index_topk_pattern", "is not built yet");
  if (const int64_t every = config.integer("index_topk_freq", 1);
      every > 1 && layers > config.integer("index_skip_topk_offset", 2))
    config.refuse_key("index_topk_freq", std::to_string(every) + " is not built yet", "built: 1");
}

std::unique_ptr<Model> build(const ConfigReader& config, nn::Building& building) {
  DecoderSpec spec = read_latent_decoder(config, {.vocabulary = 154880,
                                                  .hidden = 6144,
                                                  .intermediate = 12288,
                                                  .layers = 78,
                                                  .heads = 64,
                                                  .max_positions = 202752,
                                                  .epsilon = 1e-5});
  nn::MlaSpec mla = read_mla(config, spec, {.q_rank = 2048, .plain_dim = 192, .v_dim = 256});
  read_indexer(config, mla, 32, 128, 2048, true);
  refuse_shared_indexers(config, int64_t(spec.layers.size()));
  set_mla(spec, mla);
  set_corrected_experts(config, spec, {});
  return build_decoder(std::move(spec), building);
}

}  // namespace

Family glm_moe_dsa() {
  return {.model_type = "glm_moe_dsa",
          .base_prefix = "model",
          .ignored = {"rotary_emb.inv_freq"},
          .build = build,
          .extra_layers = true};
}

}  // namespace easydel::models
