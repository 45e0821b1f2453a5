#include "easydel/data/windowed_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>
#include <vector>

#include "easydel/base/error.h"
#include "easydel/data/epoch_order.h"

namespace easydel::data {
namespace {

std::vector<int64_t> all_of(const WindowedOrder& order, int64_t size) {
  std::vector<int64_t> out;
  for (int64_t i = 0; i < size; ++i) out.push_back(order.at(i));
  return out;
}

TEST(WindowedOrder, HasEveryRowOnceWhateverTheSizes) {
  for (const int64_t size : {1, 63, 64, 65, 127, 128, 129, 1000, 1001, 1283})
    for (const Windows& windows : {Windows{1, 0}, Windows{1, 100}, Windows{3, 0}, Windows{5, 400}, Windows{7, 1}}) {
      const WindowedOrder order(size, windows, 9, Use::epoch, {4});
      std::vector<int64_t> rows = all_of(order, size);
      std::ranges::sort(rows);
      for (int64_t i = 0; i < size; ++i) ASSERT_EQ(rows[size_t(i)], i) << size << " by " << windows.block_rows;
    }
  EXPECT_THROW((void)WindowedOrder(10, {1, 0}, 9, Use::epoch, {4}).at(10), Bug);
}

TEST(WindowedOrder, AWindowIsAFewWholeBlocks) {
  const int64_t size = 5000, block = 7;  // 715 blocks, the last one of two rows: 11 windows of 65
  const WindowedOrder order(size, {block, 10}, 3, Use::epoch, {0});
  ASSERT_EQ(order.windows(), 11);
  std::set<int64_t> before;
  int64_t place = 0;
  for (int64_t window = 0; window < order.windows(); ++window) {
    std::set<int64_t> blocks;
    int64_t rows = 0;
    for (; place < size && order.window_of(place) == window; ++place, ++rows) blocks.insert(order.at(place) / block);
    EXPECT_EQ(blocks.size(), 65u);
    EXPECT_EQ(rows, 65 * block - (blocks.contains(714) ? 5 : 0));
    for (const int64_t one : blocks) EXPECT_TRUE(before.insert(one).second) << "block " << one << " is in two windows";
  }
  EXPECT_EQ(place, size);
  // Enough rows in a window: 1400 rows are 200 blocks of 7.
  EXPECT_EQ(WindowedOrder(size, {block, 1400}, 3, Use::epoch, {0}).windows(), 3);
}

TEST(WindowedOrder, AWindowThatHoldsEverythingIsTheFullShuffle) {
  const auto full = [](int64_t size) {
    const Permutation order(size, permutation_key(5, Use::epoch, {2}));
    std::vector<int64_t> out;
    for (int64_t i = 0; i < size; ++i) out.push_back(order.at(i));
    return out;
  };
  for (const Windows& windows : {Windows{}, Windows{100, 0}, Windows{1, 1000}})
    EXPECT_EQ(all_of(WindowedOrder(1000, windows, 5, Use::epoch, {2}), 1000), full(1000));
  EXPECT_NE(all_of(WindowedOrder(1000, {2, 0}, 5, Use::epoch, {2}), 1000), full(1000));
}

TEST(WindowedOrder, EpochsOfAMixtureShuffleEachSourceByWindows) {
  const std::vector<int64_t> sizes{2000, 900};
  const EpochOrder order(sizes, {true, 10, StopStrategy::longest, {0.7, 0.3}}, true, 9, {{4, 0}, {4, 0}});
  std::vector<int64_t> first;  // of the first source, in the epoch's order
  std::set<int64_t> seen;
  for (int64_t i = 0; i < order.size(); ++i) {
    const int64_t index = order.at(1, i);
    seen.insert(index);
    if (index < 2000) first.push_back(index);
  }
  EXPECT_EQ(seen.size(), 2900u);
  std::set<int64_t> blocks;  // 500 blocks, 7 windows of 71 or 72
  for (size_t i = 0; i < 71 * 4; ++i) blocks.insert(first[i] / 4);
  EXPECT_LE(blocks.size(), 72u);
}

// Spearman's correlation of the place in the file and the place in the epoch.
double correlation(const std::vector<int64_t>& rows) {
  const auto count = double(rows.size());
  double sum = 0;
  for (size_t i = 0; i < rows.size(); ++i) sum += std::pow(double(rows[i]) - double(i), 2);
  return 1 - 6 * sum / (count * (count * count - 1));
}

// How many times as many neighbours are of one topic as by chance, in a file that is sorted by topic.
double neighbours(const std::vector<int64_t>& rows, int64_t topics) {
  const auto count = int64_t(rows.size());
  int64_t same = 0;
  for (size_t i = 1; i < rows.size(); ++i) same += rows[i] * topics / count == rows[i - 1] * topics / count;
  return double(same) / double(count - 1) * double(topics);
}

TEST(WindowedOrder, ShufflesASortedFileWhereABufferDoesNot) {
  constexpr int64_t size = 400'000, window = 10'000, topics = 20;
  for (const uint64_t seed : {1, 2}) {
    const auto rows = all_of(WindowedOrder(size, {27, window}, seed, Use::epoch, {0}), size);
    EXPECT_LE(std::abs(correlation(rows)), 0.02);
    EXPECT_LE(neighbours(rows, topics), 1.2);
  }
  // A buffer of so many rows, from which one is drawn for each that comes in, as `datasets` shuffles streams.
  std::vector<int64_t> buffer, rows;
  Stream draws(1, Use::documents, 0);
  for (int64_t i = 0; i < size + window; ++i) {
    if (i < window) {
      buffer.push_back(i);
      continue;
    }
    const auto drawn = size_t(draws.below(buffer.size()));
    rows.push_back(buffer[drawn]);
    buffer[drawn] = i < size ? i : buffer.back();
    if (i >= size) buffer.pop_back();
  }
  EXPECT_GE(correlation(rows), 0.99);
  EXPECT_GE(neighbours(rows, topics), 10);
}

}  // namespace
}  // namespace easydel::data
