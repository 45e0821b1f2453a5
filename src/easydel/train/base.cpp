// trainer_type: base (= ray). The loss of the model's own task: which method that is follows from what the model has on
// top of its stack.
#include "easydel/train/base_config.h"

#include "easydel/base/error.h"
#include "easydel/train/own_task.h"
#include "easydel/train/sft_config.h"

namespace easydel::train {
namespace {

// Prepares rows where there is no model to say what becomes of them: by their kind.
class Rows final : public Method {
 public:
  Rows(std::unique_ptr<Method> texts, std::unique_ptr<Method> classes, std::unique_ptr<Method> answers)
      : texts_(std::move(texts)), classes_(std::move(classes)), answers_(std::move(answers)) {}
  data::Prepared prepare(const data::TypedRow& row) const override {
    if (row.kind != data::RowKind::labelled) return texts_->prepare(row);
    return (row.label.is_map() ? answers_ : classes_)->prepare(row);
  }
  Batch collate(std::span<const data::Example* const>) const override { throw Bug("a batch without a model"); }
  Loss loss(const models::Model&, const Batch&, const Forwarding&) const override {
    throw Bug("a loss without a model");
  }

 private:
  std::unique_ptr<Method> texts_, classes_, answers_;
};

std::unique_ptr<Method> next_tokens(const Setting& setting) {
  TrainerSection trainer = setting.trainer;
  trainer.use(std::make_shared<const SftConfig>());
  return build_method({trainer, setting.mixture, setting.tokenizer, setting.model, setting.side});
}

std::unique_ptr<Method> own_task(const Setting& setting) {
  const auto& own = setting.trainer.own_as<BaseTrainerConfig>();
  if (!setting.model)
    return std::make_unique<Rows>(next_tokens(setting), class_learning(setting),
                                  answer_learning(setting, own.doc_stride));
  const models::Task task = setting.model->task();
  using enum models::Task;
  switch (task) {
    case causal_lm:
      return next_tokens(setting);
    case masked_lm:
      return masked_learning(setting, own.mlm_probability);
    case sequence_classification:
    case token_classification:
      return class_learning(setting);
    case question_answering:
      return answer_learning(setting, own.doc_stride);
    case base:
      break;
  }
  refuse("model.task", "the model has no head, so it has no loss",
         "set model.task to causal-language-model or sequence-classification or question-answering, or give a folder "
         "with a masked language "
         "model's head or a head of words' classes");
}

}  // namespace

MethodEntry base() { return {"base", own_task}; }
MethodEntry ray() { return {"ray", own_task}; }

}  // namespace easydel::train
