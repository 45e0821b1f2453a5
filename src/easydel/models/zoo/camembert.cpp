// CamemBERT (arXiv 1911.03894): RoBERTa with a French vocabulary.
#include "easydel/models/bert_keys.h"

namespace easydel::models::zoo::camembert {
namespace {

std::unique_ptr<Model> build(const ConfigReader& config, nn::Building& building) {
  return build_roberta(config, building, 30522);
}

}  // namespace

Family family() { return roberta_family("camembert", build); }

}  // namespace easydel::models::zoo::camembert
