#include "easydel/data/packed_order.h"

#include <gtest/gtest.h>

#include <numeric>
#include <set>

#include "easydel/base/error.h"
#include "easydel/data/epoch_order.h"

namespace easydel::data {
namespace {

TEST(PackedOrder, OneWindowHasTheOrderOfAsManyRows) {
  for (const bool shuffled : {true, false}) {
    const PackedEpochs packed({37}, shuffled, 5);
    const EpochOrder rows({37}, {}, shuffled, 5);
    for (const int64_t epoch : {0, 4})
      for (int64_t i = 0; i < 37; ++i) EXPECT_EQ(packed.at(epoch, i), rows.at(epoch, i));
    EXPECT_THROW((void)packed.at(0, 37), Bug);
  }
}

TEST(PackedOrder, AnEpochUsesOneWindowAfterTheOther) {
  const std::vector<int64_t> ends{40, 40, 65, 100};  // the second one has no rows
  const PackedEpochs packed(ends, true, 5);
  ASSERT_EQ(packed.size(), 100);
  std::set<std::vector<int64_t>> orders, firsts;
  for (const int64_t epoch : {0, 1, 2, 3, 4, 5, 6, 7, 0}) {
    std::vector<int64_t> rows, windows;
    for (int64_t i = 0; i < packed.size(); ++i) {
      rows.push_back(packed.at(epoch, i));
      const int64_t window = std::ranges::upper_bound(ends, rows.back()) - ends.begin();
      if (windows.empty() || windows.back() != window) windows.push_back(window);
    }
    EXPECT_EQ(windows.size(), 3u);
    EXPECT_EQ(std::set<int64_t>(rows.begin(), rows.end()).size(), 100u);
    orders.insert(windows);
    std::erase_if(rows, [](int64_t row) { return row >= 40; });
    firsts.insert(rows);
  }
  EXPECT_GT(orders.size(), 1u) << "windows are shuffled, too";
  EXPECT_EQ(firsts.size(), 8u) << "an order of its own for each epoch";
  const PackedEpochs plain(ends, false, 5);
  for (int64_t i = 0; i < 100; ++i) EXPECT_EQ(plain.at(2, i), i);
}

}  // namespace
}  // namespace easydel::data
