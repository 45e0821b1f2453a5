// trainer_type: grpo. Group relative policy optimisation (arXiv:2402.03300) with the losses of
// trl/trainer/grpo_trainer.py.
#include "easydel/train/grpo.h"

#include <algorithm>

namespace easydel::train {

Loss Grpo::loss(const models::Model& model, const Batch& batch, const Forwarding& how) const {
  const bool bonus = own_.entropy_coef != 0 || own_.use_adaptive_entropy;
  const SequenceScores found = score_sequences(model, batch, how, scoring(true, bonus));
  const auto device = found.logps.device();
  const auto moved = [&](const Tensor& t) { return t.defined() ? t.to(device) : t; };
  const PolicyTokens tokens{found.logps,
                            found.details.entropy,
                            moved(of_learned(batch, old_logps_column)),
                            moved(of_learned(batch, reference_logps_column)),
                            found.sequence,
                            found.lengths,
                            moved(batch.column(advantages_column)),
                            moved(batch.column(mean_items_column))};
  const bool applies = !own_.use_adaptive_entropy || last_entropy_ <= own_.entropy_target;
  PolicyLoss out = policy_loss(tokens,
                               {.keys = own_,
                                .max_completion_length = rollout_keys().max_completion_length,
                                .entropy_coef = applies ? entropy_coef_ : 0,
                                .entropy_bonus = bonus,
                                .accumulation = common().gradient_accumulation_steps},
                               how);
  if (bonus && how.training) {
    window_entropy_ += out.entropy;
    window_tokens_ += out.entropy_tokens;
    out.metrics.push_back({"entropy_coef", adapted(), 1});
  }
  add_sampling_difference(out.metrics, found.logps, batch, how);
  add_generation_metrics(out.metrics, how);
  return {out.sum, out.metrics};
}

Advantages Grpo::advantages(const RewardTable& rewards, const std::vector<data::Example>&) const {
  return group_advantages(rewards, own_.scale_rewards, own_.multi_objective_aggregation);
}

void Grpo::updated(const models::Model& model, int64_t step) {
  GroupPolicy::updated(model, step);
  if (own_.use_adaptive_entropy && window_tokens_ > 0) {
    entropy_coef_ = adapted();
    last_entropy_ = window_entropy();
  }
  window_entropy_ = window_tokens_ = 0;
}

MethodState Grpo::state() const {
  MethodState out = GroupPolicy::state();
  if (!own_.use_adaptive_entropy) return out;
  if (!out.document.is_map()) out.document = Value::map();
  out.document.set("entropy_coef", Value::number(entropy_coef_));
  out.document.set("last_entropy", Value::number(last_entropy_));
  return out;
}

void Grpo::restore(const SavedState& saved) {
  GroupPolicy::restore(saved);
  const auto number = [&](const char* name, double& value) {
    if (const Value* found = saved.document().find(name)) value = found->as_double().value_or(value);
  };
  number("entropy_coef", entropy_coef_);
  number("last_entropy", last_entropy_);
}

double Grpo::adapted() const {
  if (!own_.use_adaptive_entropy) return entropy_coef_;
  return window_entropy() <= own_.entropy_target
             ? std::min(entropy_coef_ + own_.entropy_coef_delta, own_.entropy_coef_max)
             : std::max(entropy_coef_ - own_.entropy_coef_delta, own_.entropy_coef_min);
}

std::unique_ptr<Method> build_grpo(const Setting& setting, const GrpoKeys& own, GroupPolicy::Keys keys) {
  return std::make_unique<Grpo>(setting, own, std::move(keys));
}

MethodEntry grpo() {
  return {"grpo", [](const Setting& setting) {
            const auto& config = setting.trainer.own_as<GrpoConfig>();
            return build_grpo(
                setting, config.own,
                {config.own.beta, config.rollouts, config.window, config.reference, config.own.importance});
          }};
}

}  // namespace easydel::train
