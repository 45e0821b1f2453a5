// CamemBERT (arXiv 1911.03894): RoBERTa with a French vocabulary.
#include "easydel/models/bert_keys.h"

namespace easydel::models {
namespace {

std::unique_ptr<Model> build(const ConfigReader& config, nn::Building& building) {
  return build_roberta(config, building, 30522);
}

}  // namespace

Family camembert() {
  return {.model_type = "camembert",
          .base_prefix = "roberta",
          .ignored = {"embeddings.position_ids", "lm_head.decoder.weight", "lm_head.decoder.bias"},
          .build = build,
          .tied_by_default = true,
          .ignored_parts = {"pooler.dense"}};
}

}  // namespace easydel::models
