// trainer_type: gkd. Generalised knowledge distillation (arXiv:2306.13649): the Jensen-Shannon divergence between a
// student and a teacher at the tokens of the data's answers, or of answers that the student or the teacher samples
// (trl/experimental/gkd/gkd_trainer.py). The temperature is that of the samples alone.
#include "easydel/train/gkd_config.h"

#include "easydel/base/error.h"
#include "easydel/base/log.h"
#include "easydel/tensor/random.h"
#include "easydel/train/completion_source.h"
#include "easydel/train/language_rows.h"
#include "easydel/train/teaching.h"

namespace easydel::train {
namespace {

TeachingTerms gkd_terms(const GkdConfig& config, const TrainerConfig& common) {
  TeachingTerms out;
  out.beta = config.own.beta;
  out.disable_dropout = config.own.disable_dropout;
  out.chunk = common.loss().chunk_token_size.value_or(0);
  return out;
}

class Gkd final : public Method {
 public:
  explicit Gkd(const Setting& setting)
      : config_(setting.trainer.own_as<GkdConfig>()),
        common_(setting.trainer.common),
        seed_(uint64_t(setting.trainer.common.shuffle_seed_train)),
        rows_(setting, {.add_special_tokens = config_.sft.add_special_tokens,
                        .assistant_only = config_.sft.assistant_only_loss,
                        .completion_only = config_.sft.completion_only_loss,
                        .eos_token = config_.sft.eos_token,
                        .last_message_only = true}),
        teaching_(setting.side.teacher.model, setting.model.get(), gkd_terms(config_, setting.trainer.common)) {
    if (!setting.model) return;
    if (config_.sft.packing) log::warning("trainer.packing: gkd learns answers one by one; it has no effect");
    generation_.do_sample = true;
    generation_.temperature = config_.own.temperature;
    generation_.top_k = 0;
    generation_.max_new_tokens = config_.own.max_new_tokens;
    generation_.seed = seed_;
    set_end_tokens(generation_, *setting.model, setting.tokenizer.get());
    if (setting.side.teacher.model) teacher_.emplace(setting.side.teacher.model, setting.tokenizer);
  }

  data::Prepared prepare(const data::TypedRow& row) const override {
    if (samples() && row.kind == data::RowKind::text)
      refuse(row.where, "a text has no prompt that could be continued",
             "give messages or prompt + completion, or set lmbda: 0 and seq_kd: false");
    return rows_.prepare(row);
  }

  std::unique_ptr<BatchSource> source(std::unique_ptr<BatchSource> rows, const Sampler* sampler) override {
    if (!samples()) return rows;
    CompletionOptions options;
    options.generation = generation_;
    options.sampler_of = [this, sampler](int64_t step, int64_t micro) -> const Sampler* {
      const auto drawn = tensor::philox(tensor::key_of(seed_, "gkd.lmbda"), uint64_t(step), uint64_t(micro));
      if (double(tensor::uniform(drawn[0])) < config_.own.lmbda) return sampler;
      return config_.own.seq_kd ? &*teacher_ : nullptr;
    };
    return std::make_unique<CompletionSource>(std::move(rows), std::move(options));
  }

  std::optional<SampledSizes> sampled_sizes() const override {
    if (!samples()) return std::nullopt;
    return train::sampled_sizes(generation_, common_);
  }
  Batch collate(std::span<const data::Example* const> examples) const override { return labelled_batch(examples); }
  Loss loss(const models::Model& model, const Batch& batch, const Forwarding& forwarding) const override {
    return teaching_.loss(model, batch, forwarding);
  }

 private:
  bool samples() const { return config_.own.lmbda > 0 || config_.own.seq_kd; }

  GkdConfig config_;
  TrainerConfig common_;
  uint64_t seed_;
  LanguageRows rows_;
  Teaching teaching_;
  generation::GenerationConfig generation_;
  std::optional<Sampler> teacher_;
};

}  // namespace

MethodEntry gkd() {
  return {"gkd", [](const Setting& setting) -> std::unique_ptr<Method> { return std::make_unique<Gkd>(setting); }};
}

}  // namespace easydel::train
