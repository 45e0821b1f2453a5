#include "easydel/train/time_left.h"

namespace easydel::train {

void TimeLeft::add_step(double seconds) {
  if (++count_ == 2) steps_.clear();
  steps_.push_back(seconds);
  if (steps_.size() > window) steps_.pop_front();
}

double TimeLeft::step_seconds() const {
  double sum = 0;
  for (const double seconds : steps_) sum += seconds;
  return steps_.empty() ? 0 : sum / double(steps_.size());
}

double TimeLeft::left(int64_t steps, int64_t evaluations, int64_t saves, int64_t benchmarks) const {
  const double step = step_seconds();
  return double(steps) * step + double(evaluations) * evaluation_.value_or(evaluation_in_steps_ * step) +
         double(saves) * save_ + double(benchmarks) * benchmarks_;
}

int64_t due_between(int64_t from, int64_t to, int64_t interval, bool last) {
  if (to <= from) return 0;
  const int64_t divisible = interval > 0 ? to / interval - from / interval : 0;
  return divisible + (last && !(interval > 0 && to % interval == 0));
}

}  // namespace easydel::train
