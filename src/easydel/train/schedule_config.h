// The words of `trainer.scheduler` and the keys of `scheduler_kwargs`. A face: no torch.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "easydel/config/fields.h"
#include "easydel/train/schedule.h"

namespace easydel::train {

enum class Scheduler : uint8_t {
  none,
  linear,
  cosine,
  cosine_with_restarts,
  cosine_with_min_lr,
  cosine_warmup_with_min_lr,
  polynomial,
  inverse_sqrt,
  warmup_stable_decay,
  reduce_on_plateau
};
constexpr auto choices(Scheduler) {
  using enum Scheduler;
  return std::array{config::Choice{none, "none"}.also("constant").also("constant_with_warmup"),
                    config::Choice{linear, "linear"},
                    config::Choice{cosine, "cosine"},
                    config::Choice{cosine_with_restarts, "cosine_with_restarts"},
                    config::Choice{cosine_with_min_lr, "cosine_with_min_lr"},
                    config::Choice{cosine_warmup_with_min_lr, "cosine_warmup_with_min_lr"},
                    config::Choice{polynomial, "polynomial"},
                    config::Choice{inverse_sqrt, "inverse_sqrt"},
                    config::Choice{warmup_stable_decay, "warmup_stable_decay"}.also("wsd"),
                    config::Choice{reduce_on_plateau, "reduce_on_plateau"}.also("reduce_lr_on_plateau")};
}

constexpr auto choices(Schedule::Curve) {
  using enum Schedule::Curve;
  return std::array{config::Choice{linear, "linear"}, config::Choice{cosine, "cosine"},
                    config::Choice{one_minus_sqrt, "1-sqrt"}};
}

enum class PlateauThreshold : uint8_t { rel, abs };
constexpr auto choices(PlateauThreshold) {
  using enum PlateauThreshold;
  return std::array{config::Choice{rel, "rel"}, config::Choice{abs, "abs"}};
}

struct SchedulerArguments {
  std::optional<double> num_cycles, power, lr_end, min_lr, min_lr_rate, min_lr_ratio, warmup_lr_rate;
  std::optional<int64_t> timescale, num_decay_steps, num_stable_steps;
  std::optional<Schedule::Curve> warmup_type, decay_type;
  // reduce_on_plateau
  double factor = 0.1, threshold = 1e-4, eps = 1e-8;
  int64_t patience = 10, cooldown = 0;
  PlateauThreshold threshold_mode = PlateauThreshold::rel;

  static constexpr auto doc = "More about the schedule, by transformers' names.";
  template <class C>
  static constexpr auto fields() {
    using namespace config;
    return std::array{
        field<&C::num_cycles>("cosine and warmup_stable_decay: waves, null: 0.5, half of one; cosine_with_restarts: "
                              "restarts, null: 1.",
                              above(0)),
        field<&C::power>("polynomial: the exponent; null: 1.", above(0)),
        field<&C::lr_end>("polynomial: the rate at the end; null: 1e-7.", at_least(0)),
        field<&C::min_lr>("cosine_with_min_lr, reduce_on_plateau: the lowest rate.", at_least(0)),
        field<&C::min_lr_rate>("cosine_with_min_lr: the same as a fraction of learning_rate.", between(0, 1)),
        field<&C::min_lr_ratio>("warmup_stable_decay: the lowest rate as a fraction of learning_rate.", between(0, 1)),
        field<&C::warmup_lr_rate>(
            "cosine_warmup_with_min_lr: the first rate as a fraction of learning_rate; null: 1 / warmup_steps.",
            between(0, 1)),
        field<&C::timescale>("inverse_sqrt: steps; null: warmup_steps, or 10000 without a warm-up.", at_least(1)),
        field<&C::num_decay_steps>("warmup_stable_decay: steps in which the rate falls at the end.", at_least(1)),
        field<&C::num_stable_steps>("warmup_stable_decay: steps at learning_rate; null: the remaining ones.",
                                    at_least(0)),
        field<&C::warmup_type>(
            "warmup_stable_decay: the curve of the warm-up: linear, cosine or 1-sqrt; null: linear."),
        field<&C::decay_type>("warmup_stable_decay: the curve of the fall; null: cosine."),
        field<&C::factor>("reduce_on_plateau: the rate is multiplied by it.", between(0, 1)),
        field<&C::threshold>("reduce_on_plateau: what counts as better.", at_least(0)),
        field<&C::eps>("reduce_on_plateau: a smaller change of the rate is not made.", at_least(0)),
        field<&C::patience>("reduce_on_plateau: evaluations without a better one that are tolerated.", at_least(0)),
        field<&C::cooldown>("reduce_on_plateau: evaluations after a change in which none counts.", at_least(0)),
        field<&C::threshold_mode>("reduce_on_plateau: rel, threshold is a fraction of the best; abs, a difference."),
    };
  }
};

// The schedule of a word. `base` has the peak rate, the end rate of linear and cosine, the warm-up and the steps.
// reduce_on_plateau is constant here; train/plateau.h lowers it.
Schedule make_schedule(Scheduler word, const SchedulerArguments& arguments, Schedule base);

}  // namespace easydel::train
