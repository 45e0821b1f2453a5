#include "easydel/data/row_copies.h"

#include <gtest/gtest.h>

#include <set>

#include "easydel/base/files.h"
#include "support/data.h"

namespace easydel::data {
namespace {

namespace fs = std::filesystem;

class Copies : public testing::Test {
 protected:
  // Digests 0 to 40, many of them several times; nothing for each ninth row.
  static std::optional<uint64_t> digest(int64_t row) {
    if (row % 9 == 8) return std::nullopt;
    return uint64_t(row * row % 41) * 0x9E3779B97F4A7C15;
  }
  RowSet found(int64_t rows, const CopySearch& search) {
    return find_copies(
        rows,
        [&](const auto& sink) {
          ++asked_;
          for (int64_t row = 0; row < rows; ++row) sink(digest(row));
        },
        search);
  }
  static void expect_all_but_the_first(const RowSet& copies) {
    std::set<uint64_t> seen;
    for (int64_t row = 0; row < copies.size(); ++row) {
      const auto own = digest(row);
      // 0 counts as 1, which no other digest is.
      EXPECT_EQ(copies.has(row), own && !seen.insert(*own).second) << row;
    }
  }
  const test::TemporaryFolder folder_;
  int asked_ = 0;
};

TEST_F(Copies, AreAllButTheFirst) {
  CopySearch search;
  for (const int64_t rows : {0, 1, 200, 1000})
    for (const int64_t together : {7, 100, 5000}) {
      search.rows_together = together;
      expect_all_but_the_first(found(rows, search));
    }
}

TEST_F(Copies, OfManyRowsAreFoundInParts) {
  CopySearch search{folder_ / "rows", "key"};
  search.rows_together = 60;
  expect_all_but_the_first(found(700, search));
  const std::vector<fs::path> left = files::list(folder_ / "rows");
  ASSERT_EQ(left.size(), 1u) << "the digests are gone";
  EXPECT_EQ(left[0].filename(), "copies-key.safetensors");
}

TEST_F(Copies, AreKeptForLaterRuns) {
  CopySearch search{folder_ / "rows", "key"};
  const RowSet first = found(300, search);
  EXPECT_EQ(found(300, search).words(), first.words());
  EXPECT_EQ(asked_, 1);
  expect_all_but_the_first(found(301, search));
  EXPECT_EQ(asked_, 2) << "of other rows";
  found(301, {folder_ / "rows", "other"});
  EXPECT_EQ(asked_, 3);
  test::write_file(folder_ / "rows/copies-key.safetensors", "nonsense");
  expect_all_but_the_first(found(300, search));
  EXPECT_EQ(asked_, 4);
}

}  // namespace
}  // namespace easydel::data
