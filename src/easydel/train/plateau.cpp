#include "easydel/train/plateau.h"

#include <algorithm>

namespace easydel::train {

bool Plateau::is_better(double metric) const {
  if (!best_) return true;
  const double sign = greater_is_better_ ? 1 : -1, threshold = arguments_.threshold;
  const bool relative = arguments_.threshold_mode == PlateauThreshold::rel;
  const double bar = relative ? *best_ * (1 + sign * threshold) : *best_ + sign * threshold;
  return greater_is_better_ ? metric > bar : metric < bar;
}

void Plateau::evaluated(double metric) {
  if (is_better(metric)) {
    best_ = metric;
    worse_ = 0;
  } else {
    ++worse_;
  }
  if (cooldown_ > 0) {
    --cooldown_;
    worse_ = 0;
  }
  if (worse_ <= arguments_.patience) return;
  const double lower = std::max(rate_ * arguments_.factor, arguments_.min_lr.value_or(0));
  if (rate_ - lower > arguments_.eps) rate_ = lower;
  cooldown_ = arguments_.cooldown;
  worse_ = 0;
}

Value Plateau::state() const {
  Value out = Value::map();
  out.set("rate", Value::number(rate_));
  if (best_) out.set("best", Value::number(*best_));
  out.set("worse", Value::integer(worse_));
  out.set("cooldown", Value::integer(cooldown_));
  return out;
}

void Plateau::restore(const Value& state) {
  const auto number = [&](const char* name) -> std::optional<double> {
    const Value* const value = state.find(name);
    return value ? value->as_double() : std::nullopt;
  };
  rate_ = number("rate").value_or(rate_);
  best_ = number("best");
  worse_ = int64_t(number("worse").value_or(0));
  cooldown_ = int64_t(number("cooldown").value_or(0));
}

}  // namespace easydel::train
