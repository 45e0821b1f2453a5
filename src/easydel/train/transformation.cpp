#include "easydel/train/transformation.h"

namespace easydel::train {
namespace {

OptimizerRules rules_of(const TrainerConfig& config) {
  const OptimizerArguments& more = config.extra_optimizer_kwargs;
  const auto adam = [&] {
    return adamw({.b1 = more.b1.value_or(0.9), .b2 = more.b2.value_or(0.999), .eps = more.eps.value_or(1e-8)});
  };
  switch (config.optimizer) {
    case OptimizerName::adafactor:
      return {adafactor({.eps = more.eps.value_or(1e-30)})};
    case OptimizerName::lion:
      return {lion(more.b1.value_or(0.9), more.b2.value_or(0.99))};
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
                    .most_dense = more.max_size_dense,
                    .skew = config.optimizer == OptimizerName::skew})};
    case OptimizerName::soap: {
      const double b2 = more.b2.value_or(0.95);
      return {soap({.b1 = more.b1.value_or(0.95),
                    .b2 = b2,
                    .shampoo_b = b2,
                    .eps = more.eps.value_or(1e-8),
                    .frequency = more.precondition_frequency,
                    .most_rows = more.max_precond_dim})};
    }
    default:
      return {adam()};
  }
}

Schedule schedule_of(const TrainerConfig& config, int64_t steps) {
  Schedule out;
  out.shape = config.scheduler == Scheduler::linear   ? Schedule::Shape::linear
              : config.scheduler == Scheduler::cosine ? Schedule::Shape::cosine
                                                      : Schedule::Shape::constant;
  out.rate = config.learning_rate;
  out.rate_end = config.learning_rate_end.value_or(0);
  out.warmup = config.warmup_steps;
  out.steps = steps;
  return out;
}

}  // namespace

Transformation transformation_of(const TrainerConfig& config, int64_t steps) {
  return {.optimizer = {.rules = rules_of(config),
                        .weight_decay = config.weight_decay,
                        .decay_pattern = config.weight_decay_pattern},
          .schedule = schedule_of(config, steps),
          .clip_grad = config.clip_grad};
}

}  // namespace easydel::train
