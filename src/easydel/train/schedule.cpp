#include "easydel/train/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace easydel::train {
namespace {

// Rises from 0 to 1 with `progress`.
double risen(Schedule::Curve curve, double progress) {
  switch (curve) {
    case Schedule::Curve::linear:
      return progress;
    case Schedule::Curve::cosine:
      return 0.5 * (1 - std::cos(std::numbers::pi * progress));
    case Schedule::Curve::one_minus_sqrt:
      return 1 - std::sqrt(1 - progress);
  }
  return progress;
}

double fallen(Schedule::Curve curve, double progress, double cycles) {
  switch (curve) {
    case Schedule::Curve::linear:
      return 1 - progress;
    case Schedule::Curve::cosine:
      return 0.5 * (1 + std::cos(std::numbers::pi * cycles * 2 * progress));
    case Schedule::Curve::one_minus_sqrt:
      return 1 - std::sqrt(progress);
  }
  return 1 - progress;
}

}  // namespace

double Schedule::at(int64_t step) const {
  const double least = rate > 0 ? rate_end / rate : 0;
  const auto above_least = [&](double factor) { return rate * std::max(0.0, factor * (1 - least) + least); };
  const auto ratio = [](int64_t a, int64_t b) { return double(a) / double(std::max<int64_t>(1, b)); };
  if (step < warmup && shape == Shape::cosine_warmup)
    return rate *
           (warmup_from < 0 ? ratio(step + 1, warmup) : warmup_from + (1 - warmup_from) * ratio(step, warmup - 1));
  if (step < warmup) {
    const double progress = ratio(step, warmup);
    return shape == Shape::warmup_stable_decay ? above_least(risen(warmup_curve, progress)) : rate * progress;
  }
  const double progress = ratio(step - warmup, steps - warmup);
  switch (shape) {
    case Shape::constant:
      return rate;
    case Shape::linear:
      return above_least(std::max(0.0, ratio(steps - step, steps - warmup)));
    case Shape::cosine:
      return above_least(0.5 * (1 + std::cos(std::numbers::pi * cycles * 2 * progress)));
    case Shape::cosine_warmup:
      return above_least(0.5 *
                         (1 + std::cos(std::numbers::pi * cycles * 2 * ratio(step - warmup + 1, steps - warmup))));
    case Shape::cosine_with_restarts:
      if (progress >= 1) return 0;
      return rate * std::max(0.0, 0.5 * (1 + std::cos(std::numbers::pi * std::fmod(cycles * progress, 1.0))));
    case Shape::polynomial:
      if (step > steps) return rate_end;
      return (rate - rate_end) * std::pow(1 - progress, power) + rate_end;
    case Shape::inverse_sqrt: {
      const int64_t scale = timescale > 0 ? timescale : warmup > 0 ? warmup : 10000;
      return rate / std::sqrt(double(step + scale - warmup) / double(scale));
    }
    case Shape::warmup_stable_decay: {
      const int64_t level = stable >= 0 ? stable : steps - warmup - decay;
      if (step < warmup + level) return rate;
      if (step < warmup + level + decay)
        return above_least(fallen(decay_curve, ratio(step - warmup - level, decay), cycles));
      return rate_end;
    }
  }
  return rate;
}

}  // namespace easydel::train
