// RoBERTa (arXiv 1907.11692): BERT whose positions begin behind the padding's id and count no padding.
#include "easydel/models/bert_keys.h"

namespace easydel::models {
namespace {

std::unique_ptr<Model> build(const ConfigReader& config, nn::Building& building) {
  return build_roberta(config, building, 50265);
}

}  // namespace

Family roberta() {
  return {.model_type = "roberta",
          .base_prefix = "roberta",
          .ignored = {"embeddings.position_ids", "lm_head.decoder.weight", "lm_head.decoder.bias"},
          .build = build,
          .tied_by_default = true,
          .ignored_parts = {"pooler.dense"}};
}

}  // namespace easydel::models
