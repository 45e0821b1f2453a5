#include "easydel/data/shuffle.h"

#include <gtest/gtest.h>

#include <vector>

namespace easydel::data {
namespace {

// The first known answer of Random123's philox4x32-10: counter and key are zero.
TEST(Shuffle, DrawsPhiloxsNumbers) {
  Stream zero(0, Use{}, 0);
  EXPECT_EQ(zero.next(), 0xe169c58d6627e8d5u);
  EXPECT_EQ(zero.next(), 0x9b00dbd8bc57ac4cu);
}

TEST(Shuffle, DrawsOtherNumbersForAnotherSeedUseOrNumber) {
  const auto first = [](uint64_t seed, Use use, uint64_t number) { return Stream(seed, use, number).next(); };
  const uint64_t own = first(3, Use::epoch, 5);
  EXPECT_EQ(first(3, Use::epoch, 5), own);
  EXPECT_NE(first(4, Use::epoch, 5), own);
  EXPECT_NE(first(3 + (uint64_t{1} << 32), Use::epoch, 5), own);
  EXPECT_NE(first(3, Use::block, 5), own);
  EXPECT_NE(first(3, Use::epoch, 6), own);
}

TEST(Shuffle, DrawsBelowABoundWithoutBias) {
  Stream stream(7, Use::epoch, 0);
  std::vector<int> counts(3);
  for (int i = 0; i < 30000; ++i) {
    const uint64_t value = stream.below(3);
    ASSERT_LT(value, 3u);
    ++counts[value];
  }
  for (const int count : counts) EXPECT_NEAR(count, 10000, 400);  // five deviations
  EXPECT_EQ(stream.below(1), 0u);
}

}  // namespace
}  // namespace easydel::data
