// trainer_type: tpo. Triple preference optimisation (arXiv:2405.16681) as trl/experimental/tpo has it.
#include "easydel/train/tpo_config.h"

#include <ATen/ops/relu.h>

#include "easydel/base/error.h"
#include "easydel/data/encode.h"
#include "easydel/train/pairs.h"

namespace easydel::train {
namespace {

class Tpo final : public Method {
 public:
  explicit Tpo(const Setting& setting) : config_(setting.trainer.own_as<TpoConfig>()), common_(setting.trainer.common) {
    if (setting.tokenizer) encoder_.emplace(setting.tokenizer, data::EncoderOptions{});
  }

  data::Prepared prepare(const data::TypedRow& row) const override {
    data::EncodedPair pair = encoder_->encode_pair(row, gold());
    std::vector<std::vector<int32_t>*> answers{&pair.chosen, &pair.rejected};
    if (gold()) answers.push_back(&pair.reference);
    data::Prepared out = prepared_answers(std::move(pair.prompt), answers,
                                          limits_of(common_, config_.max_prompt_length, config_.max_completion_length));
    if (pair.merges) out.mistakes.add(data::RowMistake::merged_prompt);
    return out;
  }

  Batch collate(std::span<const data::Example* const> examples) const override {
    Batch batch = flat_batch(examples);
    batch.weight = double(batch.examples);
    return batch;
  }

  Loss loss(const models::Model& model, const Batch& batch, const Forwarding& forwarding) const override {
    Forwarding how = forwarding;
    if (config_.disable_dropout) how.training = false;
    const SequenceScores scores = score_sequences(model, batch, how,
                                                  {.entropy = how.metrics,
                                                   .correct = how.metrics,
                                                   .mean_logit = how.metrics,
                                                   .chunk = common_.loss().chunk_token_size.value_or(0)});
    const int64_t answers = gold() ? 3 : 2;
    const Tensor sums = scores.sums(scores.logps);
    const bool means = config_.loss_type == TpoLoss::ipo || config_.loss_type == TpoLoss::tpo_l;
    const Halves logps = halves(means ? sums / scores.lengths.clamp_min(1) : sums, answers);
    Loss out;
    out.sum = pair_loss(logps.chosen - logps.rejected).mean() * batch.weight;
    if (gold()) {
      const Tensor likelihood = sums.chunk(3)[2].sum(), count = scores.lengths.chunk(3)[2].sum();
      out.sum = out.sum - how.mean(likelihood, count, batch.weight) * (config_.tpo_alpha * batch.weight);
    }
    if (!how.metrics) return out;
    add_reward_metrics(out, {config_.beta * logps.chosen, config_.beta * logps.rejected});
    add_means(out, "logps", logps);
    add_logit_metrics(out, scores, answers);
    add_token_metrics(out, scores, answers);
    return out;
  }

 private:
  bool gold() const { return config_.tpo_alpha != 0; }

  Tensor pair_loss(const Tensor& margin) const {
    const double beta = config_.beta;
    switch (config_.loss_type) {
      case TpoLoss::sigmoid:
        return smoothed_preference(beta * margin, config_.label_smoothing);
      case TpoLoss::tpo_l:
        return smoothed_preference(beta * (margin - config_.tpo_l_gamma / beta), config_.label_smoothing);
      case TpoLoss::hinge:
        return at::relu(1 - beta * margin);
      case TpoLoss::ipo:
        return (margin - 1 / (2 * beta)).square();
    }
    throw Bug("a loss without a formula");
  }

  TpoConfig config_;
  TrainerConfig common_;
  std::optional<data::Encoder> encoder_;
};

}  // namespace

MethodEntry tpo() {
  return {"tpo", [](const Setting& setting) -> std::unique_ptr<Method> { return std::make_unique<Tpo>(setting); }};
}

}  // namespace easydel::train
