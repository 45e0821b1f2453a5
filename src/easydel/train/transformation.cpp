#include "easydel/train/transformation.h"

#include <cmath>

#include "easydel/train/eight_bit_states.h"
#include "easydel/train/short_moments.h"

namespace easydel::train {
namespace {

OptimizerRules rules_of(const TrainerConfig& config) {
  const OptimizerArguments& more = config.extra_optimizer_kwargs;
  const auto adam = [&] {
    return adamw({.b1 = more.b1.value_or(0.9), .b2 = more.b2.value_or(0.999), .eps = more.eps.value_or(1e-8)});
  };
  const AdamOptions averages{.b1 = more.b1.value_or(0.9),
                             .b2 = more.b2.value_or(0.999),
                             .eps = more.eps.value_or(1e-8),
                             .decoupled = more.decoupled_weight_decay};
  const auto slow_and_fast = [&] {
    return ademamix({.b1 = averages.b1,
                     .b2 = averages.b2,
                     .b3 = more.b3,
                     .alpha = more.slow_weight,
                     .eps = averages.eps,
                     .alpha_steps = more.t_alpha.value_or(0),
                     .b3_steps = more.t_beta3.value_or(0)});
  };
  const auto signs = [&] { return lion(more.b1.value_or(0.9), more.b2.value_or(0.99)); };
  // States in codes; those of embeddings in fp32 on request.
  const auto coded = [&](const auto& rule) {
    return OptimizerRules{eight_bit(rule()), {}, more.stable_embedding ? rule() : nullptr};
  };
  switch (config.optimizer) {
    case OptimizerName::adamw_8bit:
      return coded(adam);
    case OptimizerName::ademamix_8bit:
      return coded(slow_and_fast);
    case OptimizerName::lion_8bit:
      return coded(signs);
    case OptimizerName::adafactor:
      return {adafactor({.eps = more.eps.value_or(1e-30)})};
    case OptimizerName::lion:
      return {signs()};
    case OptimizerName::mars:
      return {mars({.b1 = more.b1.value_or(0.95),
                    .b2 = more.b2.value_or(0.99),
                    .eps = more.eps.value_or(1e-8),
                    .gamma = more.gamma})};
    case OptimizerName::muon:
      return {muon({.momentum = more.momentum.value_or(0.95), .nesterov = more.nesterov}), adam()};
    case OptimizerName::rmsprop:
      return {rmsprop({.alpha = more.decay,
                       .eps = more.eps.value_or(1e-8),
                       .momentum = more.momentum.value_or(0),
                       .centered = more.centered})};
    case OptimizerName::quad:
    case OptimizerName::skew:
      return {kron({.b1 = more.b1.value_or(0.95),
                    .preconditioner_rate = more.preconditioner_lr,
                    .block = more.block_size,
                    .max_dense = more.max_size_dense,
                    .skew = config.optimizer == OptimizerName::skew})};
    case OptimizerName::soap: {
      const double b2 = more.b2.value_or(0.95);
      return {soap({.b1 = more.b1.value_or(0.95),
                    .b2 = b2,
                    .shampoo_b = b2,
                    .eps = more.eps.value_or(1e-8),
                    .frequency = more.precondition_frequency,
                    .max_rows = more.max_precond_dim})};
    }
    case OptimizerName::adadelta:
      return {adadelta(more.rho, more.eps.value_or(1e-6))};
    case OptimizerName::adagrad:
      return {adagrad(
          {.eps = more.eps.value_or(1e-10), .rate_decay = more.rate_decay, .initial = more.initial_accumulator_value})};
    case OptimizerName::adamax:
      return {adamax(averages)};
    case OptimizerName::ademamix:
      return {slow_and_fast()};
    case OptimizerName::nadam:
      return {nadam(averages, more.momentum_decay)};
    case OptimizerName::radam:
      return {radam(averages)};
    case OptimizerName::schedule_free_adamw:
      return {schedule_free_adamw({.b1 = averages.b1,
                                   .b2 = averages.b2,
                                   .eps = averages.eps,
                                   .r = more.r,
                                   .weight_rate_power = more.weight_rate_power})};
    case OptimizerName::sgd: {
      const double momentum = more.momentum.value_or(0);
      return {sgd({.momentum = momentum,
                   .dampening = more.dampening,
                   .nesterov = more.nesterov && momentum > 0 && more.dampening == 0})};
    }
    case OptimizerName::adamw:
      break;
  }
  return {adam()};
}

// With the first moments in the dtype that is asked for.
OptimizerRules kept_rules_of(const TrainerConfig& config) {
  OptimizerRules out = rules_of(config);
  if (config.tx_mu_dtype == MomentDType::fp32) return out;
  for (std::shared_ptr<const UpdateRule>* rule : {&out.rule, &out.others, &out.embeddings})
    if (*rule) *rule = short_moments(*rule);
  return out;
}

Schedule schedule_of(const TrainerConfig& config, int64_t steps) {
  Schedule base;
  base.rate = config.learning_rate;
  if (config.scheduler == Scheduler::linear || config.scheduler == Scheduler::cosine)
    base.rate_end = config.learning_rate_end.value_or(0);
  base.warmup = config.warmup_steps > 0 ? config.warmup_steps : int64_t(std::ceil(config.warmup_ratio * double(steps)));
  base.steps = steps;
  return make_schedule(config.scheduler, config.scheduler_kwargs, base);
}

std::vector<ParameterGroup> groups_of(const TrainerConfig& config) {
  std::vector<ParameterGroup> out;
  for (const LearningRate& one : config.learning_rates)
    out.push_back({one.pattern, one.rate ? *one.rate / config.learning_rate : 1, one.weight_decay});
  return out;
}

}  // namespace

Transformation transformation_of(const TrainerConfig& config, int64_t steps) {
  return {.optimizer = {.rules = kept_rules_of(config),
                        .weight_decay = config.weight_decay,
                        .groups = groups_of(config),
                        .ema_decay = config.ema_decay,
                        .decay_pattern = config.weight_decay_pattern},
          .schedule = schedule_of(config, steps),
          .clip_grad = config.clip_grad};
}

}  // namespace easydel::train
