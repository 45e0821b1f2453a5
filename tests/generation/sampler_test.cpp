#include "easydel/generation/sampler.h"

#include <cmath>
#include <set>

#include <gtest/gtest.h>

namespace easydel::generation {
namespace {

TEST(Sampler, PicksByProbability) {
  const std::vector<float> scores = {std::log(0.5f), never_drawn, std::log(0.2f), std::log(0.3f)};
  EXPECT_EQ(pick(scores, 0.0), 0);
  EXPECT_EQ(pick(scores, 0.499), 0);
  EXPECT_EQ(pick(scores, 0.501), 2);
  EXPECT_EQ(pick(scores, 0.699), 2);
  EXPECT_EQ(pick(scores, 0.701), 3);
  EXPECT_EQ(pick(scores, 0.999999), 3);
}

TEST(Sampler, DrawsBySeedChoiceAndPosition) {
  EXPECT_EQ(draw(1, 2, 3), draw(1, 2, 3));
  EXPECT_NE(draw(1, 2, 3), draw(2, 2, 3));
  EXPECT_NE(draw(1, 2, 3), draw(1, 3, 3));
  EXPECT_NE(draw(1, 2, 3), draw(1, 2, 4));
}

TEST(Sampler, PicksSeveralWithoutPickingOneTwiceAndTheLikelyFirst) {
  const std::vector<float> scores = {std::log(0.6f), std::log(0.3f), never_drawn, std::log(0.1f)};
  std::vector<int> first(4);
  constexpr int kTries = 4000;
  for (int position = 0; position < kTries; ++position) {
    const auto picked = pick_several(scores, 4, 9, static_cast<size_t>(position));
    EXPECT_EQ(std::set<size_t>(picked.begin(), picked.end()).size(), 4u);
    EXPECT_EQ(picked[3], 2u);  // what cannot come is only a last resort
    ++first[picked[0]];
  }
  const double shares[] = {0.6, 0.3, 0, 0.1};
  for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(first[i] / double(kTries), shares[i], 0.03) << i;  // 4 deviations
}

}  // namespace
}  // namespace easydel::generation
