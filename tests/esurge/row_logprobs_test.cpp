#include "easydel/esurge/row_logprobs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <random>
#include <span>
#include <vector>

#include "easydel/base/error.h"

namespace easydel::esurge {
namespace {

TEST(RowLogprobs, AreTheMostLikelyTokensWithTiesByTheirIds) {
  const std::vector<float> row = {1, 3, 2, 3, -5, 2, 3};
  const TokenLogprobs found = row_logprobs(row, 4, 3);
  EXPECT_EQ(found.token_ids, (std::vector<TokenId>{1, 3, 6, 2}));
  EXPECT_EQ(found.chosen, 1u);
  double sum = 0;
  for (const float logit : row) sum += std::exp(double(logit));
  EXPECT_NEAR(found.logprobs[0], 3 - std::log(sum), 1e-6);
  EXPECT_EQ(found.logprobs[0], found.logprobs[2]);
  EXPECT_EQ(found.chosen_logprob(), row_logprob(row, 3));
}

TEST(RowLogprobs, AreThoseOfASort) {
  std::mt19937 random(3);
  for (const size_t size : {1, 5, 63, 64, 65, 130, 1000}) {
    std::vector<float> row(size);
    for (float& x : row) x = float(random() % 97);  // with ties
    std::vector<TokenId> sorted(size);
    std::iota(sorted.begin(), sorted.end(), 0);
    std::ranges::stable_sort(sorted, std::greater(), [&](TokenId id) { return row[size_t(id)]; });
    for (const size_t count : {1, 2, 20}) {
      const std::span<const TokenId> right = std::span(sorted).first(std::min(count, size));
      const TokenLogprobs found = row_logprobs(row, int64_t(count), right.back());
      EXPECT_TRUE(std::ranges::equal(found.token_ids, right)) << size << ", " << count;
      EXPECT_EQ(found.chosen, right.size() - 1);
    }
  }
}

TEST(RowLogprobs, FindATokenWhereverItIs) {
  std::vector<float> row(200);
  for (size_t i = 0; i < row.size(); ++i) {
    row[i] = 1;
    EXPECT_EQ(row_logprobs(row, 1, 0).token_ids[0], TokenId(i));
    row[i] = 0;
  }
}

TEST(RowLogprobs, HaveTheChosenTokenAlways) {
  const std::vector<float> row = {0, 1, 2, 3};
  const TokenLogprobs two = row_logprobs(row, 2, 0);
  EXPECT_EQ(two.token_ids, (std::vector<TokenId>{3, 2, 0}));
  EXPECT_EQ(two.chosen, 2u);
  const TokenLogprobs none = row_logprobs(row, 0, 2);
  EXPECT_EQ(none.token_ids, (std::vector<TokenId>{2}));
  EXPECT_EQ(row_logprobs(row, 20, 2).token_ids, (std::vector<TokenId>{3, 2, 1, 0}));
  EXPECT_THROW(row_logprobs(row, 1, 4), Bug);
}

TEST(RowLogprobs, ShowARowThatIsNoNumber) {
  std::vector<float> row(100, 0.5f);
  EXPECT_TRUE(std::isfinite(row_logprob(row, 3)));
  EXPECT_NEAR(row_entropy(row), std::log(100), 1e-5);
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    row[77] = bad;
    EXPECT_FALSE(std::isfinite(row_logprob(row, 3))) << bad;
  }
}

}  // namespace
}  // namespace easydel::esurge
