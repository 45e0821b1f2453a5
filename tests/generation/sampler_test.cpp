#include "easydel/generation/sampler.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <span>

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

// By the definition: the first token at which the sum of the probabilities, added in fp64, is above the number.
TokenId picked_in_fp64(std::span<const float> scores, double number) {
  const float top = *std::ranges::max_element(scores);
  double sum = 0;
  for (const float score : scores) sum += std::exp(double(score - top));
  double left = number * sum;
  size_t i = 0;
  while (i + 1 < scores.size() && (left -= std::exp(double(scores[i] - top))) >= 0) ++i;
  return TokenId(i);
}

// Rows as large as vocabularies: numbers everywhere, and next to the border of two tokens, where fp32 would decide
// otherwise.
TEST(Sampler, PicksFromManyTokensAsFp64Does) {
  for (const size_t count : {2048, 5000, 49152}) {
    for (const float spread : {0.01F, 3.0F, 30.0F}) {
      std::vector<float> scores(count);
      for (size_t i = 0; i < count; ++i)
        scores[i] = i % 7 == 3 ? never_drawn : spread * float(draw(1, i, count) + draw(2, i, count) - 1);
      EXPECT_EQ(likeliest(scores), std::ranges::max_element(scores) - scores.begin());
      const float top = *std::ranges::max_element(scores);
      double sum = 0, before = 0;
      for (const float score : scores) sum += std::exp(double(score - top));
      for (size_t i = 0; i < count; ++i) {
        if (i % (count / 16) == 0) {
          for (const double number : {before / sum + 1e-9, before / sum - 1e-9, draw(3, i, count)}) {
            if (number < 0 || number >= 1) continue;
            EXPECT_EQ(pick(scores, number), picked_in_fp64(scores, number)) << number;
          }
        }
        before += std::exp(double(scores[i] - top));
      }
    }
  }
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
