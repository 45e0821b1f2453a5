// XLM-RoBERTa (arXiv 1911.02116): RoBERTa with a vocabulary of a hundred languages.
#include "easydel/models/bert_keys.h"

namespace easydel::models::zoo::xlm_roberta {
namespace {

std::unique_ptr<Model> build(const ConfigReader& config, nn::Building& building) {
  return build_roberta(config, building, 30522);
}

}  // namespace

Family family() { return roberta_family("xlm-roberta", build); }

}  // namespace easydel::models::zoo::xlm_roberta
