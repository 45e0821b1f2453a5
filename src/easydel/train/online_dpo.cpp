// trainer_type: online_dpo. Direct preference optimisation on pairs of completions that the model samples while it
// trains (trl/experimental/online_dpo/online_dpo_trainer.py).
#include "easydel/train/online_dpo_config.h"

#include <ATen/ops/where.h>

#include "easydel/train/online_losses.h"
#include "easydel/train/online_pairs.h"
#include "easydel/train/pairs.h"

namespace easydel::train {
namespace {

class OnlineDpo final : public OnlinePairs {
 public:
  OnlineDpo(const Setting& setting, const OnlineDpoConfig& config)
      : OnlinePairs(setting,
                    {config.rollouts, config.reference, config.own.missing_eos_penalty, config.own.disable_dropout}),
        own_(config.own),
        beta_(for_epochs("trainer.beta", own_.beta)) {}

  Loss loss(const models::Model& model, const Batch& batch, const Forwarding& how) const override {
    const Scored found = scored(model, batch, how);
    const Halves policy = halves(found.policy.sums(found.policy.logps)),
                 reference = halves(found.reference.sums(found.reference.logps));
    const Judged worth = judged(batch, policy.chosen.device());
    const Tensor first_wins = worth.first.ge(worth.second);
    const double beta = value_at(beta_, epoch_of(how.step));
    const OnlineMargins margins =
        online_margins({policy.chosen, reference.chosen}, {policy.rejected, reference.rejected}, first_wins);
    Loss out;
    out.sum = online_loss(own_.loss_type, beta, margins).sum();
    if (!how.metrics) return out;
    add_generation_metrics(out.metrics, how);
    add_reward_metrics(out, {beta * margins.chosen, beta * margins.rejected});
    add_means(
        out, "logps",
        {at::where(first_wins, policy.chosen, policy.rejected), at::where(first_wins, policy.rejected, policy.chosen)});
    add_mean(out, "objective/scores", (worth.first + worth.second) / 2);
    add_mean(out, "objective/scores_margin", (worth.first - worth.second).abs());
    add_mean(out, "val/contain_eos_token", (worth.first_ended + worth.second_ended) / 2);
    out.metrics.push_back({"beta", beta, 1});
    return out;
  }

 private:
  OnlineDpoKeys own_;
  std::vector<double> beta_;
};

}  // namespace

MethodEntry online_dpo() {
  return {"online_dpo", [](const Setting& setting) -> std::unique_ptr<Method> {
            return std::make_unique<OnlineDpo>(setting, setting.trainer.own_as<OnlineDpoConfig>());
          }};
}

}  // namespace easydel::train
