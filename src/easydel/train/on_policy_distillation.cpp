// trainer_type: on_policy_distillation. Distillation at the tokens of completions that the student (or the teacher)
// samples while it trains (easydel/trainers/on_policy_distillation_trainer; with beta
// trl/trainer/distillation_trainer.py).
#include "easydel/train/on_policy_distillation_config.h"

#include "easydel/train/completion_source.h"
#include "easydel/train/language_rows.h"
#include "easydel/train/teaching.h"

namespace easydel::train {
namespace {

class OnPolicyDistillation final : public Method {
 public:
  explicit OnPolicyDistillation(const Setting& setting)
      : config_(setting.trainer.own_as<OnPolicyDistillationConfig>()),
        common_(setting.trainer.common),
        rows_(setting, {.completion_only = true,
                        .without_template = config_.samples.skip_apply_chat_template,
                        .last_message_only = true}),
        teaching_(setting.side.teacher.model, setting.model.get(),
                  teaching_terms(config_.distillation, setting.trainer.common)),
        options_(completion_options(config_.samples, setting)) {
    if (setting.side.teacher.model) teacher_.emplace(setting.side.teacher.model, setting.tokenizer);
  }

  data::Prepared prepare(const data::TypedRow& row) const override { return rows_.prepare(row); }
  std::unique_ptr<BatchSource> source(std::unique_ptr<BatchSource> rows, const Sampler* sampler) override {
    const Sampler* const who = config_.own.generate_with_teacher ? &*teacher_ : sampler;
    options_.sampler_of = [who](int64_t, int64_t) { return who; };
    return std::make_unique<CompletionSource>(std::move(rows), options_);
  }
  std::vector<data::Example> evaluated(std::vector<data::Example> rows, const Sampler* sampler,
                                       int64_t first) override {
    const Sampler* const who = config_.own.generate_with_teacher ? &*teacher_ : sampler;
    return who ? completed_held_out(rows, options_, *who, first) : rows;
  }
  int64_t evaluated_per_row() const override { return options_.generation.num_return_sequences; }
  std::optional<SampledSizes> sampled_sizes() const override {
    return train::sampled_sizes(options_.generation, common_);
  }
  Batch collate(std::span<const data::Example* const> examples) const override { return labelled_batch(examples); }
  Loss loss(const models::Model& model, const Batch& batch, const Forwarding& forwarding) const override {
    return teaching_.loss(model, batch, forwarding);
  }

 private:
  OnPolicyDistillationConfig config_;
  TrainerConfig common_;
  LanguageRows rows_;
  Teaching teaching_;
  CompletionOptions options_;
  std::optional<Sampler> teacher_;
};

}  // namespace

MethodEntry on_policy_distillation() {
  return {"on_policy_distillation", [](const Setting& setting) -> std::unique_ptr<Method> {
            return std::make_unique<OnPolicyDistillation>(setting);
          }};
}

}  // namespace easydel::train
