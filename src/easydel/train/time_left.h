// How long the rest of a run will take, from how long its steps, evaluations and saves took so far. Seconds everywhere;
// no clock is read here.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

namespace easydel::train {

class TimeLeft {
 public:
  // Guesses until the first evaluation and the first save were made: an evaluation's cost in steps, a save's seconds.
  explicit TimeLeft(double evaluation_in_steps = 0, double save_seconds = 0)
      : evaluation_in_steps_(evaluation_in_steps), save_(save_seconds) {}

  void add_step(double seconds);
  void add_evaluation(double seconds) { evaluation_ = seconds; }
  void add_save(double seconds) { save_ = seconds; }
  void add_benchmarks(double seconds) { benchmarks_ = seconds; }

  // Seconds of a step, by the last ones; the first step of a run counts only until there are others, because it also
  // allocates memory and packs weights. 0: there was none.
  double step_seconds() const;
  // Of this many steps, evaluations, saves and runs of the benchmarks, whose first is not guessed.
  double left(int64_t steps, int64_t evaluations, int64_t saves, int64_t benchmarks = 0) const;

 private:
  static constexpr size_t window = 32;  // steps
  std::deque<double> steps_;
  int64_t count_ = 0;
  double evaluation_in_steps_;
  std::optional<double> evaluation_;
  double save_, benchmarks_ = 0;
};

// How many of the steps from `from` (exclusive) to `to` (inclusive) are divisible by `interval`, or are the last one.
// interval 0: only the last one. `last`: whether the last one counts if it is not divisible.
int64_t due_between(int64_t from, int64_t to, int64_t interval, bool last);

}  // namespace easydel::train
