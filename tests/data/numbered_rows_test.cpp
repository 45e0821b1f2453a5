#include "easydel/data/numbered_rows.h"

#include <gtest/gtest.h>

#include "easydel/base/error.h"
#include "support/data.h"

namespace easydel::data {
namespace {

// Rows "0 xxx", "1 xxx" ... of 620 bytes.
DatasetOptions options_of(const std::filesystem::path& file, int rows) {
  std::string text;
  for (int i = 0; i < rows; ++i) text += str("{\"text\": \"", i, " ", std::string(600, 'x'), "\"}\n");
  test::write_file(file, text);
  DatasetOptions out;
  InformConfig& inform = out.informs.emplace_back();
  inform.type = "jsonl";
  inform.data_files = {file.string()};
  return out;
}

int64_t number_of(const std::optional<PreparedRow>& row) { return std::stoll(row->row.text.scalar); }

TEST(NumberedRows, ABlockIsReadOnce) {
  const test::TemporaryFolder folder;
  const DatasetOptions options = options_of(folder / "a.jsonl", 2000);  // 19 blocks
  RowIndices indices({});
  const Prepare prepare = [](const TypedRow&) { return Prepared(); };
  NumberedRows rows(options, {0}, prepare, indices);
  ASSERT_EQ(rows.size(), 2000);
  const int64_t block = rows.block_rows();
  EXPECT_NEAR(double(block), 65536.0 / 620, 4);
  rows.keep({block, 1});
  EXPECT_EQ(number_of(rows.at(0)), 0);
  EXPECT_EQ(number_of(rows.at(3 * block + 5)), 3 * block + 5);
  // What was read is still there when the file is gone.
  std::filesystem::remove(folder / "a.jsonl");
  EXPECT_EQ(number_of(rows.at(block - 1)), block - 1);
  EXPECT_EQ(number_of(rows.at(3 * block)), 3 * block);
  EXPECT_THROW((void)rows.at(block), UserError);
  EXPECT_THROW((void)rows.at(2000), Bug);
}

TEST(NumberedRows, KeepsTheBlocksOfTwoWindows) {
  const test::TemporaryFolder folder;
  const DatasetOptions options = options_of(folder / "a.jsonl", 20'000);  // about 190 blocks, two windows
  RowIndices indices({});
  const Prepare prepare = [](const TypedRow&) { return Prepared(); };
  NumberedRows rows(options, {0}, prepare, indices);
  const int64_t block = rows.block_rows(), blocks = (rows.size() + block - 1) / block;
  rows.keep({block, 1});
  ASSERT_EQ(WindowedOrder::windows_of(rows.size(), {block, 1}), 2);
  const int64_t kept = 2 * ((blocks + 1) / 2) + 2;
  EXPECT_GE(kept, blocks);
  NumberedRows few(options, {0}, prepare, indices);  // keeps one
  EXPECT_EQ(number_of(few.at(0)), 0);
  EXPECT_EQ(number_of(few.at(block)), block);
  for (int64_t i = 0; i < blocks; ++i) (void)rows.at(i * block);
  std::filesystem::remove(folder / "a.jsonl");
  EXPECT_EQ(number_of(rows.at(1)), 1) << "all were kept";
  EXPECT_EQ(number_of(few.at(block + 1)), block + 1);
  EXPECT_THROW((void)few.at(1), UserError) << "the first one was dropped";
}

}  // namespace
}  // namespace easydel::data
