#include "easydel/data/row_set.h"

#include <gtest/gtest.h>

namespace easydel::data {
namespace {

TEST(RowSets, HaveWhatWasAdded) {
  RowSet set(130);
  for (const int64_t row : {0, 63, 64, 129}) set.add(row);
  EXPECT_EQ(set.count(), 4);
  EXPECT_TRUE(set.has(63) && set.has(64) && set.has(129));
  EXPECT_FALSE(set.has(1) || set.has(62) || set.has(128));
  EXPECT_EQ(set.words().size(), 3u);
  EXPECT_TRUE(RowSet(130, set.words()).has(129));
  EXPECT_ANY_THROW(RowSet(200, set.words()));
}

// Against a list, with sets that leave out nothing, all of a word or group of words, and every kind of end.
TEST(RowSets, KeptRowsAreThoseOfAList) {
  for (const int64_t size : {0, 1, 64, 511, 512, 513, 5000})
    for (const int64_t each : {1, 2, 3, 64, 700}) {
      RowSet out(size);
      std::vector<int64_t> left;
      for (int64_t row = 0; row < size; ++row)
        if (row / each % 2 == 1 || row == 4)
          out.add(row);
        else
          left.push_back(row);
      const KeptRows kept(out);
      ASSERT_EQ(kept.size(), int64_t(left.size())) << size << " " << each;
      for (size_t i = 0; i < left.size(); ++i) ASSERT_EQ(kept.at(int64_t(i)), left[i]) << size << " " << each;
      for (int64_t row = 0; row < size; ++row) ASSERT_EQ(kept.has(row), !out.has(row));
      EXPECT_ANY_THROW(kept.at(kept.size()));
    }
}

}  // namespace
}  // namespace easydel::data
