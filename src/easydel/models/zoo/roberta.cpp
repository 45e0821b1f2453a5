// RoBERTa (arXiv 1907.11692): BERT whose positions start after the padding id and do not count padding.
#include "easydel/models/bert_keys.h"

namespace easydel::models::zoo::roberta {
namespace {

std::unique_ptr<Model> build(const ConfigReader& config, nn::Building& building) {
  return build_roberta(config, building, 50265);
}

}  // namespace

Family family() { return roberta_family("roberta", build); }

}  // namespace easydel::models::zoo::roberta
