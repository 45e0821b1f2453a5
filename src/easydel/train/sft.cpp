// trainer_type: sft. Supervised fine-tuning: the cross-entropy of the next token, divided by the number of labels in
// the full batch (trl/trainer/sft_trainer.py).
#include "easydel/train/sft_config.h"

#include <ATen/ops/exp.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <numbers>

#include "easydel/base/error.h"
#include "easydel/data/text_bytes.h"
#include "easydel/train/language_rows.h"

namespace easydel::train {
namespace {

LanguageRowOptions row_options(const Setting& setting, const SftConfig& config) {
  const auto& mixture = setting.mixture;
  return {.add_special_tokens = config.add_special_tokens,
          .assistant_only = config.assistant_only_loss,
          .completion_only = config.completion_only_loss,
          .eos_token = config.eos_token,
          .packed = config.packing || mixture.pack_tokens || mixture.pack_on_the_fly};
}

class Sft final : public Method {
 public:
  explicit Sft(const Setting& setting)
      : config_(setting.trainer.own_as<SftConfig>()),
        rows_(setting, row_options(setting, config_)),
        loss_(setting.trainer.common.loss()) {
    smoothing_ = config_.label_smoothing > 0 ? config_.label_smoothing : loss_.label_smoothing;
  }

  data::Prepared prepare(const data::TypedRow& row) const override { return rows_.prepare(row); }

  Batch collate(std::span<const data::Example* const> examples) const override {
    Batch batch = flat_batch(examples);
    const auto sequences = int64_t(batch.cu_seqlens.size()) - 1;
    batch.weight = double(batch.labelled);
    if (batch.has(data::loss_weights)) batch.weight = labelled_weights(batch).sum(at::kDouble).item<double>();
    if (by(Normalizer::total_target_tokens)) batch.weight = double(batch.size() - (loss_.shift_tokens ? sequences : 0));
    if (by(Normalizer::average_per_sequence)) batch.weight = double(learned_sequences(batch));
    return batch;
  }

  double divisor(double weight) const override {
    if (loss_.reduction) return *loss_.reduction == Reduction::sum ? 1 : weight;
    const double again = loss_.divide_weight_sum ? weight : 1;
    if (!loss_.loss_normalizing_factor) return again;
    const auto* number = std::get_if<double>(&*loss_.loss_normalizing_factor);
    return (number && *number != 0 ? *number : weight) * again;
  }

  Loss loss(const models::Model& model, const Batch& batch, const Forwarding& forwarding) const override {
    nn::Pass pass;
    const models::Outputs outputs = forwarding.run(model, batch, pass);
    // A micro-batch without labels still takes part in the collective operations of the ranks.
    if (batch.labelled == 0) return {outputs.hidden.sum() * 0, {}};
    const auto [hidden, labels] = labelled_rows(outputs.hidden, batch, pass);
    const nn::Scores scores = model.head().score(hidden, labels, pass,
                                                 {.entropy = forwarding.metrics,
                                                  .correct = forwarding.metrics,
                                                  .uniform = smoothing_ > 0,
                                                  .log_normalizer = loss_.z_loss > 0,
                                                  .chunk = loss_.chunk_token_size.value_or(0)});
    Loss out;
    Tensor losses = token_losses(scores);
    if (batch.has(data::loss_weights)) losses = losses * labelled_weights(batch).to(losses.device());
    out.sum = by(Normalizer::average_per_sequence) ? (losses * shares(batch).to(losses.device())).sum() : losses.sum();
    if (forwarding.metrics) {
      const auto count = double(batch.labelled);
      out.metrics.push_back({"mean_token_accuracy", scores.correct.sum().item<double>(), count});
      out.metrics.push_back({"entropy", scores.entropy.sum().item<double>(), count});
      if (batch.has(data::text_bytes)) {  // held-out texts
        using enum Metric::Over;
        const double nats = -scores.logps.sum(at::kDouble).item<double>();
        const auto bytes = batch.column(data::text_bytes).sum().item<double>();
        out.metrics.push_back({"perplexity", nats, count, everything, true});
        out.metrics.push_back({"bits_per_byte", nats / std::numbers::ln2, bytes, everything});
      }
    }
    return out;
  }

 private:
  bool by(Normalizer normalizer) const {
    if (loss_.reduction || !loss_.loss_normalizing_factor) return false;
    const auto* named = std::get_if<Normalizer>(&*loss_.loss_normalizing_factor);
    return named && *named == normalizer;
  }

  static std::vector<int64_t> labels_of_sequences(const Batch& batch) {
    const auto* labels = batch.labels.const_data_ptr<int64_t>();
    std::vector<int64_t> out;
    for (size_t s = 0; s + 1 < batch.cu_seqlens.size(); ++s) {
      int64_t count = 0;
      for (int64_t i = batch.cu_seqlens[s]; i < batch.cu_seqlens[s + 1]; ++i) count += labels[i] != data::no_label;
      out.push_back(count);
    }
    return out;
  }

  static int64_t learned_sequences(const Batch& batch) {
    const auto counts = labels_of_sequences(batch);
    return int64_t(counts.size()) - std::ranges::count(counts, 0);
  }

  // For each labelled token: its weight in the mean of its sequence.
  static Tensor shares(const Batch& batch) {
    std::vector<float> out;
    for (const int64_t count : labels_of_sequences(batch)) out.insert(out.end(), size_t(count), 1.0f / float(count));
    return at::tensor(at::ArrayRef<float>(out));
  }

  Tensor token_losses(const nn::Scores& scores) const {
    Tensor losses = -scores.logps;
    if (config_.loss_type == TokenLoss::dft) losses = losses * scores.logps.detach().exp();
    if (smoothing_ > 0) losses = (1 - smoothing_) * losses - smoothing_ * scores.uniform;
    if (loss_.z_loss > 0) losses = losses + loss_.z_loss * scores.log_normalizer.square();
    return losses;
  }

  SftConfig config_;
  LanguageRows rows_;
  LossConfig loss_;
  double smoothing_ = 0;
};

}  // namespace

MethodEntry sft() {
  return {"sft", [](const Setting& setting) -> std::unique_ptr<Method> { return std::make_unique<Sft>(setting); }};
}

}  // namespace easydel::train
