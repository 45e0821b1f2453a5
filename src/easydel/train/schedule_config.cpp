#include "easydel/train/schedule_config.h"

namespace easydel::train {

Schedule make_schedule(Scheduler word, const SchedulerArguments& arguments, Schedule out) {
  using Shape = Schedule::Shape;
  switch (word) {
    case Scheduler::none:
    case Scheduler::reduce_on_plateau:
      out.shape = Shape::constant;
      break;
    case Scheduler::linear:
      out.shape = Shape::linear;
      break;
    case Scheduler::cosine:
    case Scheduler::cosine_with_min_lr:
    case Scheduler::cosine_warmup_with_min_lr:
      out.shape = word == Scheduler::cosine_warmup_with_min_lr ? Shape::cosine_warmup : Shape::cosine;
      out.cycles = arguments.num_cycles.value_or(0.5);
      if (arguments.min_lr_rate) out.rate_end = *arguments.min_lr_rate * out.rate;
      if (arguments.min_lr) out.rate_end = *arguments.min_lr;
      if (word == Scheduler::cosine_warmup_with_min_lr && arguments.warmup_lr_rate)
        out.warmup_from = *arguments.warmup_lr_rate;
      break;
    case Scheduler::cosine_with_restarts:
      out.shape = Shape::cosine_with_restarts;
      out.cycles = arguments.num_cycles.value_or(1);
      break;
    case Scheduler::polynomial:
      out.shape = Shape::polynomial;
      out.power = arguments.power.value_or(1);
      out.rate_end = arguments.lr_end.value_or(1e-7);
      break;
    case Scheduler::inverse_sqrt:
      out.shape = Shape::inverse_sqrt;
      out.timescale = arguments.timescale.value_or(0);
      break;
    case Scheduler::warmup_stable_decay:
      out.shape = Shape::warmup_stable_decay;
      out.decay = arguments.num_decay_steps.value_or(0);
      out.stable = arguments.num_stable_steps.value_or(-1);
      out.rate_end = arguments.min_lr_ratio.value_or(0) * out.rate;
      out.cycles = arguments.num_cycles.value_or(0.5);
      out.warmup_curve = arguments.warmup_type.value_or(Schedule::Curve::linear);
      out.decay_curve = arguments.decay_type.value_or(Schedule::Curve::cosine);
      break;
  }
  return out;
}

}  // namespace easydel::train
