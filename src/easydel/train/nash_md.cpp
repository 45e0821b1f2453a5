// trainer_type: nash_md. Nash learning from human feedback (arXiv:2312.00886, TRL 0.24's nash_md_trainer.py): the
// model's completion against one of the geometric mixture of the model and the reference.
#include "easydel/train/nash_md_config.h"

#include <ATen/ops/sigmoid.h>

#include "easydel/train/online_losses.h"
#include "easydel/train/online_pairs.h"

namespace easydel::train {
namespace {

class NashMd final : public OnlinePairs {
 public:
  NashMd(const Setting& setting, const NashMdConfig& config)
      : OnlinePairs(setting, {config.rollouts, config.reference, config.own.missing_eos_penalty,
                              config.own.disable_dropout, false}),
        beta_(for_epochs("trainer.beta", config.own.beta)),
        mixture_(for_epochs("trainer.mixture_coef", config.own.mixture_coef)) {}

  Loss loss(const models::Model& model, const Batch& batch, const Forwarding& how) const override {
    const Scored found = scored(model, batch, how);
    const Judged worth = judged(batch, found.policy.logps.device());
    const Tensor wins = at::sigmoid(worth.first - worth.second);
    const double beta = value_at(beta_, epoch_of(how.step));
    const NashLoss nash = nash_loss(beta, {found.policy.logps, found.reference.logps}, found.policy.sequence, wins);
    Loss out;
    out.sum = nash.loss.sum();
    if (!how.metrics) return out;
    add_generation_metrics(out.metrics, how);
    const Tensor policy = found.policy.sums(found.policy.logps.detach()),
                 reference = found.reference.sums(found.reference.logps), margin = policy - reference;
    add_mean(out, "loss/score", nash.score);
    add_mean(out, "loss/kl", nash.divergence);
    add_mean(out, "logps/chosen", policy);
    add_mean(out, "logps/rejected", reference);
    add_mean(out, "rewards/chosen", worth.first);
    add_mean(out, "rewards/rejected", worth.second);
    add_mean(out, "rewards/probabilities", wins);
    add_mean(out, "rewards/margins", margin);
    add_mean(out, "rewards/accuracies", margin.gt(0));
    add_mean(out, "objective/entropy", -policy);
    add_mean(out, "val/model_contain_eos_token", worth.first_ended);
    add_mean(out, "val/ref_contain_eos_token", worth.second_ended);
    out.metrics.push_back({"mixture_coef", value_at(mixture_, epoch_of(how.step)), 1});
    out.metrics.push_back({"beta", beta, 1});
    return out;
  }

 protected:
  std::optional<Sampler> opponent(const Sampler& policy, int64_t epoch) const override {
    return policy.mixed_with(reference().sampler(tokenizer()), value_at(mixture_, epoch));
  }

 private:
  std::vector<double> beta_, mixture_;
};

}  // namespace

MethodEntry nash_md() {
  return {"nash_md", [](const Setting& setting) -> std::unique_ptr<Method> {
            return std::make_unique<NashMd>(setting, setting.trainer.own_as<NashMdConfig>());
          }};
}

}  // namespace easydel::train
