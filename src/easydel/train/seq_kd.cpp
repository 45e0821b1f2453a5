// trainer_type: seq_kd. Sequence-level distillation (arXiv:1606.07947): the cross-entropy of texts that the teacher
// samples as continuations of the data's prompts.
#include "easydel/train/seq_kd_config.h"

#include "easydel/train/completion_source.h"
#include "easydel/train/language_rows.h"
#include "easydel/train/teaching.h"

namespace easydel::train {
namespace {

class SeqKd final : public Method {
 public:
  explicit SeqKd(const Setting& setting)
      : common_(setting.trainer.common),
        rows_(setting, {.completion_only = true,
                        .without_template = setting.trainer.own_as<SeqKdConfig>().samples.skip_apply_chat_template,
                        .last_message_only = true}),
        labels_(nullptr, nullptr,
                {.divergence_weight = 0,
                 .label_weight = 1,
                 .chunk = setting.trainer.common.loss().chunk_token_size.value_or(0)}),
        options_(completion_options(setting.trainer.own_as<SeqKdConfig>().samples, setting)) {
    if (setting.side.teacher.model) teacher_.emplace(setting.side.teacher.model, setting.tokenizer);
  }

  data::Prepared prepare(const data::TypedRow& row) const override { return rows_.prepare(row); }
  std::unique_ptr<BatchSource> source(std::unique_ptr<BatchSource> rows, const Sampler*) override {
    options_.sampler_of = [this](int64_t, int64_t) { return &*teacher_; };
    return std::make_unique<CompletionSource>(std::move(rows), options_);
  }
  std::vector<data::Example> evaluated(std::vector<data::Example> rows, const Sampler*, int64_t first) override {
    return teacher_ ? completed_held_out(rows, options_, *teacher_, first) : rows;
  }
  int64_t evaluated_per_row() const override { return options_.generation.num_return_sequences; }
  std::optional<SampledSizes> sampled_sizes() const override {
    return train::sampled_sizes(options_.generation, common_);
  }
  Batch collate(std::span<const data::Example* const> examples) const override { return labelled_batch(examples); }
  Loss loss(const models::Model& model, const Batch& batch, const Forwarding& forwarding) const override {
    return labels_.loss(model, batch, forwarding);
  }

 private:
  TrainerConfig common_;
  LanguageRows rows_;
  Teaching labels_;
  CompletionOptions options_;
  std::optional<Sampler> teacher_;
};

}  // namespace

MethodEntry seq_kd() {
  return {"seq_kd", [](const Setting& setting) -> std::unique_ptr<Method> { return std::make_unique<SeqKd>(setting); }};
}

}  // namespace easydel::train
