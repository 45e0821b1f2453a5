// trainer_type: cpo. Contrastive preference optimisation (arXiv:2401.08417) as trl/experimental/cpo has it, with SimPO
// (arXiv:2405.14734; the word simpo is this method with its defaults) and AlphaPO (arXiv:2501.03884). No reference.
#include "easydel/train/cpo_config.h"

#include <ATen/ops/log_sigmoid.h>
#include <ATen/ops/relu.h>

#include "easydel/base/error.h"
#include "easydel/train/separate_answers.h"

namespace easydel::train {
namespace {

class Cpo final : public Method {
 public:
  explicit Cpo(const Setting& setting) : config_(setting.trainer.own_as<CpoConfig>()), common_(setting.trainer.common) {
    if (config_.own.loss_type == CpoLoss::alphapo) {  // another word for these two
      config_.own.loss_type = CpoLoss::simpo;
      config_.own.cpo_alpha = 0;
    }
    if (setting.tokenizer) encoder_.emplace(setting.tokenizer, data::EncoderOptions{});
  }

  data::Prepared prepare(const data::TypedRow& row) const override {
    return prepared_separately(*encoder_, row, pair_limits(common_, config_.pairs), /*chosen_prompts=*/false);
  }

  Batch collate(std::span<const data::Example* const> examples) const override {
    Batch batch = flat_batch(examples);
    batch.weight = double(batch.examples);
    return batch;
  }

  Loss loss(const models::Model& model, const Batch& batch, const Forwarding& forwarding) const override {
    Forwarding how = forwarding;
    if (config_.pairs.disable_dropout) how.training = false;
    const SequenceScores scores =
        score_sequences(model, batch, how, {.chunk = common_.loss().chunk_token_size.value_or(0)});
    const Tensor sums = scores.sums(scores.logps);
    const bool means = config_.own.loss_type == CpoLoss::ipo || config_.own.loss_type == CpoLoss::simpo;
    const Halves logps = halves(means ? sums / scores.lengths.clamp_min(1) : sums);
    const Halves rewards{reward(logps.chosen), reward(logps.rejected)};
    const Tensor likelihood = halves(sums).chosen.sum(), count = halves(scores.lengths).chosen.sum();
    Loss out;
    out.sum = pair_loss(rewards.chosen - rewards.rejected).mean() * batch.weight;
    if (config_.own.cpo_alpha != 0)
      out.sum = out.sum - how.mean(likelihood, count, batch.weight) * (config_.own.cpo_alpha * batch.weight);
    if (!how.metrics) return out;
    add_reward_metrics(out, {config_.own.beta * rewards.chosen, config_.own.beta * rewards.rejected});
    add_means(out, "logps", logps);
    const bool learned = config_.own.cpo_alpha != 0;
    out.metrics.push_back({"nll_loss", learned ? -likelihood.item<double>() : 0, count.item<double>()});
    return out;
  }

 private:
  // AlphaPO's (1 - p^-alpha) / alpha; the log-probability itself for alpha 0.
  Tensor reward(const Tensor& logps) const {
    const double alpha = config_.own.alpha;
    return alpha == 0 ? logps : (1 - (-alpha * logps).exp()) / alpha;
  }

  Tensor pair_loss(const Tensor& margin) const {
    const double beta = config_.own.beta, smoothing = config_.own.label_smoothing;
    switch (config_.own.loss_type) {
      case CpoLoss::sigmoid:
        return smoothed_preference(beta * margin, smoothing);
      case CpoLoss::simpo:
        return smoothed_preference(beta * (margin - config_.own.simpo_gamma / beta), smoothing);
      case CpoLoss::hinge:
        return at::relu(1 - beta * margin);
      case CpoLoss::ipo:
        return (margin - 1 / (2 * beta)).square();
      case CpoLoss::alphapo:
        break;
    }
    throw Bug("a loss without a formula");
  }

  CpoConfig config_;
  TrainerConfig common_;
  std::optional<data::Encoder> encoder_;
};

std::unique_ptr<Method> build_cpo(const Setting& setting) { return std::make_unique<Cpo>(setting); }

}  // namespace

MethodEntry cpo() { return {"cpo", build_cpo}; }
MethodEntry simpo() { return {"simpo", build_cpo}; }

}  // namespace easydel::train
