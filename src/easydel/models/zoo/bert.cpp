// BERT (arXiv 1810.04805): bidirectional attention, learned positions, token types, a norm after each residual sum.
#include "easydel/models/bert_keys.h"

namespace easydel::models::zoo::bert {
namespace {

std::unique_ptr<Model> build(const ConfigReader& config, nn::Building& building) {
  return build_bert(config, building, {.stack = "bert"},
                    {.dense = "cls.predictions.transform.dense",
                     .norm = "cls.predictions.transform.LayerNorm",
                     .decoder = "cls.predictions.decoder",
                     .shared_bias = "cls.predictions.bias",
                     .activated_as_stack = true});
}

}  // namespace

Family family() {
  // The first files have other names for a norm's parameters, and contain tensors of other heads.
  return {.model_type = "bert",
          .base_prefix = "bert",
          .ignored = {"embeddings.position_ids", "cls.predictions.decoder.weight", "cls.predictions.decoder.bias"},
          .build = build,
          .tied_by_default = true,
          .spellings = {{"LayerNorm.weight", "LayerNorm.gamma"}, {"LayerNorm.bias", "LayerNorm.beta"}},
          .ignored_parts = {"pooler.dense", "cls.seq_relationship"}};
}

}  // namespace easydel::models::zoo::bert
