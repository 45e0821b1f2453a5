// Lowers the learning rate when evaluations stop getting better: torch's ReduceLROnPlateau. No torch.
#pragma once

#include <cstdint>
#include <optional>

#include "easydel/base/document.h"
#include "easydel/train/schedule_config.h"

namespace easydel::train {

class Plateau {
 public:
  // `rate`: the schedule's peak, which scale() multiplies.
  Plateau(const SchedulerArguments& arguments, double rate, bool greater_is_better)
      : arguments_(arguments), peak_(rate), rate_(rate), greater_is_better_(greater_is_better) {}

  void evaluated(double metric);
  double scale() const { return peak_ > 0 ? rate_ / peak_ : 1; }

  Value state() const;
  void restore(const Value& state);

 private:
  bool is_better(double metric) const;

  SchedulerArguments arguments_;
  double peak_, rate_;
  bool greater_is_better_;
  std::optional<double> best_;
  int64_t worse_ = 0, cooldown_ = 0;  // evaluations
};

}  // namespace easydel::train
