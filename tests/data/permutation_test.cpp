#include "easydel/data/permutation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <set>
#include <vector>

#include "easydel/base/error.h"

namespace easydel::data {
namespace {

std::vector<int64_t> all_of(int64_t size, uint64_t key) {
  const Permutation order(size, key);
  std::vector<int64_t> out;
  for (int64_t i = 0; i < size; ++i) out.push_back(order.at(i));
  return out;
}

TEST(Permutation, HasEveryIndexOnce) {
  for (const int64_t size : {1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 100, 1000, 4097, 65537})
    for (const uint64_t key : {0, 1, 77}) {
      std::vector<int64_t> order = all_of(size, key);
      std::ranges::sort(order);
      for (int64_t i = 0; i < size; ++i) ASSERT_EQ(order[size_t(i)], i) << size;
    }
  EXPECT_THROW(Permutation(0, 1), Bug);
}

TEST(Permutation, HasAnInverse) {
  for (const int64_t size : {1, 2, 3, 17, 1000, 4097})
    for (int64_t i = 0; i < size; ++i) ASSERT_EQ(Permutation(size, 77).place_of(Permutation(size, 77).at(i)), i);
}

TEST(Permutation, IsAnotherForEachKey) {
  EXPECT_EQ(all_of(100, 5), all_of(100, 5));
  EXPECT_NE(all_of(100, 5), all_of(100, 6));
  std::set<uint64_t> keys;
  for (uint64_t seed = 0; seed < 3; ++seed)
    for (const Use use : {Use::epoch, Use::block, Use::source})
      for (uint64_t number = 0; number < 3; ++number) {
        keys.insert(permutation_key(seed, use, {number}));
        keys.insert(permutation_key(seed, use, {number, 1}));
        keys.insert(permutation_key(seed, use, {1, number, 2}));
      }
  EXPECT_EQ(keys.size(), 81u);
}

// Every order of four things comes about equally often, as from a fair shuffle.
TEST(Permutation, OfAFewThingsIsFair) {
  std::map<std::vector<int64_t>, int> counts;
  for (uint64_t key = 0; key < 24000; ++key) ++counts[all_of(4, permutation_key(1, Use::epoch, {key}))];
  EXPECT_EQ(counts.size(), 24u);
  for (const auto& [order, count] : counts) EXPECT_NEAR(count, 1000, 160);  // five deviations
}

// A million rows sorted by topic. The place in the file says nothing of the place in the epoch, and neighbours have the
// same topic no more often than by chance.
TEST(Permutation, MixesRowsThatAreSortedByTopic) {
  constexpr int64_t rows = 1'000'000, topics = 100;
  const std::vector<int64_t> order = all_of(rows, permutation_key(42, Use::epoch, {0}));
  double distances = 0;
  int64_t equal = 0;
  for (int64_t i = 0; i < rows; ++i) {
    const double d = double(order[size_t(i)] - i);
    distances += d * d;
    if (i > 0) equal += order[size_t(i)] * topics / rows == order[size_t(i) - 1] * topics / rows;
  }
  const double n = double(rows), spearman = 1 - 6 * distances / (n * (n * n - 1));
  EXPECT_LE(std::abs(spearman), 0.02);
  EXPECT_LE(double(equal) / double(rows - 1), 1.2 / double(topics));
}

}  // namespace
}  // namespace easydel::data
