#include "easydel/data/weight_schedule.h"

#include <gtest/gtest.h>

#include <cmath>

namespace easydel::data {
namespace {

// Shares of the first source.
std::vector<double> first_shares(WeightInterpolation interpolation, const std::vector<int64_t>& steps) {
  const WeightSchedule schedule{interpolation, {{10, {1, 1}}, {20, {3, 1}}, {40, {0, 5}}}, 1, 1};
  std::vector<double> out;
  for (const int64_t step : steps) {
    const std::vector<double> shares = schedule.shares_at(step);
    EXPECT_NEAR(shares.at(0) + shares.at(1), 1, 1e-12);
    out.push_back(std::round(shares[0] * 1e6) / 1e6);
  }
  return out;
}

TEST(WeightSchedule, PointsHoldUntilTheNextOneOrLeadToIt) {
  const std::vector<int64_t> steps{0, 10, 15, 19, 20, 30, 40, 1000};
  using Shares = std::vector<double>;
  EXPECT_EQ(first_shares(WeightInterpolation::step, steps), (Shares{0.5, 0.5, 0.5, 0.5, 0.75, 0.75, 0, 0}));
  EXPECT_EQ(first_shares(WeightInterpolation::linear, steps), (Shares{0.5, 0.5, 0.625, 0.725, 0.75, 0.375, 0, 0}));
  // (1 - cos(pi * 0.9)) / 2 = 0.975528
  EXPECT_EQ(first_shares(WeightInterpolation::cosine, steps), (Shares{0.5, 0.5, 0.625, 0.743882, 0.75, 0.375, 0, 0}));
}

}  // namespace
}  // namespace easydel::data
