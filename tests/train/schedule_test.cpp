#include "easydel/train/schedule.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <vector>

namespace easydel::train {
namespace {

Schedule schedule(Schedule::Shape shape, double end = 0) {
  Schedule out;
  out.shape = shape;
  out.rate = 1e-3;
  out.rate_end = end;
  out.warmup = 2;
  out.steps = 8;
  return out;
}

TEST(Schedule, TheWarmUpBeginsAtZero) {
  for (const auto shape : {Schedule::Shape::constant, Schedule::Shape::linear, Schedule::Shape::cosine}) {
    EXPECT_EQ(schedule(shape).at(0), 0);
    EXPECT_DOUBLE_EQ(schedule(shape).at(1), 5e-4);
    EXPECT_DOUBLE_EQ(schedule(shape).at(2), 1e-3);
  }
}

TEST(Schedule, FallsToItsEnd) {
  EXPECT_DOUBLE_EQ(schedule(Schedule::Shape::constant).at(7), 1e-3);
  EXPECT_DOUBLE_EQ(schedule(Schedule::Shape::linear).at(5), 5e-4);
  EXPECT_DOUBLE_EQ(schedule(Schedule::Shape::linear, 1e-4).at(5), 5.5e-4);
  EXPECT_DOUBLE_EQ(schedule(Schedule::Shape::linear, 1e-4).at(8), 1e-4);
  EXPECT_NEAR(schedule(Schedule::Shape::cosine).at(5), 5e-4, 1e-12);
  EXPECT_NEAR(schedule(Schedule::Shape::cosine, 2e-4).at(8), 2e-4, 1e-12);
  EXPECT_NEAR(schedule(Schedule::Shape::cosine).at(4), 0.5e-3 * (1 + std::cos(std::numbers::pi / 3)), 1e-12);
}

}  // namespace
}  // namespace easydel::train
