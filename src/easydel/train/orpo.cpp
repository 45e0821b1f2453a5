// trainer_type: orpo. Odds ratio preference optimisation (arXiv:2403.07691) as trl/experimental/orpo has it: the
// likelihood of the chosen answers with their prompts, and the odds of choosing them over the rejected ones. No
// reference.
#include "easydel/train/orpo_config.h"

#include <ATen/ops/log_sigmoid.h>
#include <ATen/ops/where.h>

#include <cmath>

#include "easydel/train/separate_answers.h"

namespace easydel::train {
namespace {

// log(1 - exp(x)) for x < 0 without cancellation.
Tensor log1mexp(const Tensor& x) { return at::where(x > -std::log(2.0), (-x.expm1()).log(), (-x.exp()).log1p()); }

class Orpo final : public Method {
 public:
  explicit Orpo(const Setting& setting)
      : config_(setting.trainer.own_as<OrpoConfig>()), common_(setting.trainer.common) {
    if (setting.tokenizer) encoder_.emplace(setting.tokenizer, data::EncoderOptions{});
  }

  data::Prepared prepare(const data::TypedRow& row) const override {
    return prepared_separately(*encoder_, row, pair_limits(common_, config_.pairs), /*chosen_prompts=*/true);
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
    // Of the chosen answers the prompts are learned, too, but only the answers' tokens count in the odds.
    const Tensor of_answer =
        batch.column(in_answer).masked_select(batch.labels.ne(data::no_label)).to(scores.logps.device(), at::kFloat);
    const Halves logps = halves(scores.sums(scores.logps * of_answer) / scores.sums(of_answer).clamp_min(1));
    const Tensor likelihood = halves(scores.sums(scores.logps)).chosen.sum();
    const Tensor count = halves(scores.lengths).chosen.sum();
    const Tensor log_odds = (logps.chosen - logps.rejected) - (log1mexp(logps.chosen) - log1mexp(logps.rejected));
    const Tensor ratio = at::log_sigmoid(log_odds);
    Loss out;
    out.sum = -(how.mean(likelihood, count, batch.weight) + (config_.own.beta * ratio).mean()) * batch.weight;
    if (!how.metrics) return out;
    add_reward_metrics(out, {config_.own.beta * logps.chosen, config_.own.beta * logps.rejected});
    add_means(out, "logps", logps);
    const auto pairs = double(ratio.size(0));
    out.metrics.push_back({"nll_loss", -likelihood.item<double>(), count.item<double>()});
    out.metrics.push_back({"log_odds_ratio", ratio.sum().item<double>(), pairs});
    out.metrics.push_back({"log_odds_chosen", log_odds.sum().item<double>(), pairs});
    return out;
  }

 private:
  OrpoConfig config_;
  TrainerConfig common_;
  std::optional<data::Encoder> encoder_;
};

}  // namespace

MethodEntry orpo() {
  return {"orpo", [](const Setting& setting) -> std::unique_ptr<Method> { return std::make_unique<Orpo>(setting); }};
}

}  // namespace easydel::train
