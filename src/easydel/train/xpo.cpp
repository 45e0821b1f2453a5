// trainer_type: xpo. Exploratory preference optimisation (arXiv:2405.21046, TRL 0.24's xpo_trainer.py): the model's
// completion against the reference's, whose likelihood is lowered.
#include "easydel/train/xpo_config.h"

#include <ATen/ops/where.h>

#include "easydel/train/online_losses.h"
#include "easydel/train/online_pairs.h"
#include "easydel/train/pairs.h"

namespace easydel::train {
namespace {

class Xpo final : public OnlinePairs {
 public:
  Xpo(const Setting& setting, const XpoConfig& config)
      : OnlinePairs(setting,
                    {config.rollouts, config.reference, config.own.missing_eos_penalty, config.own.disable_dropout}),
        own_(config.own),
        beta_(for_epochs("trainer.beta", own_.beta)),
        alpha_(for_epochs("trainer.alpha", own_.alpha)) {}

  Loss loss(const models::Model& model, const Batch& batch, const Forwarding& how) const override {
    const Scored found = scored(model, batch, how);
    const Halves policy = halves(found.policy.sums(found.policy.logps)),
                 reference = halves(found.reference.sums(found.reference.logps));
    const CompletionLogps own{policy.chosen, reference.chosen}, other{policy.rejected, reference.rejected};
    const Judged worth = judged(batch, policy.chosen.device());
    const Tensor first_wins = worth.first.ge(worth.second);
    const double beta = value_at(beta_, epoch_of(how.step)), alpha = value_at(alpha_, epoch_of(how.step));
    const OnlineMargins margins = online_margins(own, other, first_wins);
    const Tensor preference = online_loss(own_.loss_type, beta, margins), exploration = exploration_loss(alpha, other);
    Loss out;
    out.sum = (preference + exploration).sum();
    if (!how.metrics) return out;
    add_generation_metrics(out.metrics, how);
    add_reward_metrics(out, {beta * margins.chosen, beta * margins.rejected});
    // TRL adds up the model's and the reference's.
    const Tensor first = own.policy + own.reference, second = other.policy + other.reference;
    add_means(out, "logps", {at::where(first_wins, first, second), at::where(first_wins, second, first)});
    add_mean(out, "loss/dpo", preference);
    add_mean(out, "loss/xpo", exploration);
    add_mean(out, "objective/kl", (own.ratio() + other.ratio()) / 2);
    add_mean(out, "objective/entropy", -(own.policy + other.policy) / 2);
    add_mean(out, "objective/model_scores", worth.first);
    add_mean(out, "objective/ref_scores", worth.second);
    add_mean(out, "objective/scores_margin", worth.first - worth.second);
    add_mean(out, "val/model_contain_eos_token", worth.first_ended);
    add_mean(out, "val/ref_contain_eos_token", worth.second_ended);
    out.metrics.push_back({"alpha", alpha, 1});
    out.metrics.push_back({"beta", beta, 1});
    return out;
  }

 protected:
  std::optional<Sampler> opponent(const Sampler&, int64_t) const override { return reference().sampler(tokenizer()); }

 private:
  XpoKeys own_;
  std::vector<double> beta_, alpha_;
};

}  // namespace

MethodEntry xpo() {
  return {"xpo", [](const Setting& setting) -> std::unique_ptr<Method> {
            return std::make_unique<Xpo>(setting, setting.trainer.own_as<XpoConfig>());
          }};
}

}  // namespace easydel::train
