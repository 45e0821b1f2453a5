// BERT (arXiv 1810.04805): tokens that see both sides, learned positions and kinds of tokens, norms behind each sum.
#include "easydel/models/bert_keys.h"
#include "easydel/models/heads.h"

namespace easydel::models {
namespace {

std::unique_ptr<Model> build(const ConfigReader& config, nn::Building& building) {
  DecoderSpec spec = read_bert(config, {.stack = "bert"});
  if (building.head.language) {
    spec.masked_head = {.dense = "cls.predictions.transform.dense",
                        .norm = "cls.predictions.transform.LayerNorm",
                        .decoder = "cls.predictions.decoder",
                        .shared_bias = "cls.predictions.bias",
                        .activation = spec.activation,
                        .norm_options = spec.norm,
                        .deviation = spec.deviation,
                        .output_deviation = spec.deviation};
    return build_decoder(std::move(spec), building);
  }
  const Task task = task_of(config);
  nn::ClassHeadSpec classes = read_encoder_classes(config, read_classifier_dropout(config), spec.deviation);
  if (task == Task::sequence_classification || task == Task::base) {
    classes.pooling = nn::Pooling::first;
    classes.dense = building.head.stack_name("bert.pooler.dense");
  }
  if (task != Task::base) classes.output = task == Task::question_answering ? "qa_outputs" : "classifier";
  if (task == Task::base || task == Task::question_answering) classes.dropout = 0.0;
  spec.classes = std::move(classes);
  return build_decoder(std::move(spec), building);
}

}  // namespace

Family bert() {
  // The first files spell a norm's parameters otherwise, and hold what belongs to other heads.
  return {.model_type = "bert",
          .base_prefix = "bert",
          .ignored = {"embeddings.position_ids", "cls.predictions.decoder.weight", "cls.predictions.decoder.bias"},
          .build = build,
          .tied_by_default = true,
          .spellings = {{"LayerNorm.weight", "LayerNorm.gamma"}, {"LayerNorm.bias", "LayerNorm.beta"}},
          .ignored_parts = {"pooler.dense", "cls.seq_relationship"}};
}

}  // namespace easydel::models
