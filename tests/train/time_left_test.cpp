#include "easydel/train/time_left.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace easydel::train {
namespace {

// A run of 400 steps by a clock of its own: the first step packs weights, evaluations and saves cost many steps.
TEST(TimeLeft, IsRightFromTheTenthStepOfASteadyRun) {
  constexpr int64_t steps = 400, evaluation_interval = 25, save_interval = 100;
  constexpr double evaluation = 12, save = 9;
  const auto seconds_of = [](int64_t step) { return step == 1 ? 20.0 : step % 2 ? 0.9 : 1.1; };
  const auto pauses_after = [&](int64_t step) {
    return (step % evaluation_interval == 0 || step == steps ? evaluation : 0) +
           (step % save_interval == 0 || step == steps ? save : 0);
  };
  double rest = 0;
  for (int64_t step = 1; step <= steps; ++step) rest += seconds_of(step) + pauses_after(step);
  TimeLeft time(10, 5);  // guesses that are somewhat off
  double worst = 0;
  for (int64_t step = 1; step <= steps; ++step) {
    time.add_step(seconds_of(step));
    rest -= seconds_of(step);
    const double left = time.left(steps - step, due_between(step - 1, steps, evaluation_interval, true),
                                  due_between(step - 1, steps, save_interval, true));
    if (step >= 10) worst = std::max(worst, std::abs(left - rest) / rest);
    if (step % evaluation_interval == 0 || step == steps) time.add_evaluation(evaluation);
    if (step % save_interval == 0 || step == steps) time.add_save(save);
    rest -= pauses_after(step);
  }
  EXPECT_LT(worst, 0.2);
}

TEST(TimeLeft, CountsWhatIsDue) {
  EXPECT_EQ(due_between(0, 10, 3, false), 3);
  EXPECT_EQ(due_between(0, 10, 3, true), 4);
  EXPECT_EQ(due_between(0, 9, 3, true), 3);
  EXPECT_EQ(due_between(3, 9, 3, false), 2);
  EXPECT_EQ(due_between(0, 9, 0, true), 1);
  EXPECT_EQ(due_between(0, 9, 0, false), 0);
  EXPECT_EQ(due_between(9, 9, 3, true), 0);
}

}  // namespace
}  // namespace easydel::train
