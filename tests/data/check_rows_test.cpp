#include "easydel/data/check_rows.h"

#include <gtest/gtest.h>

#include "easydel/data/inform_reader.h"
#include "support/data.h"

namespace easydel::data {
namespace {

// A text's bytes as tokens, at most eight of them; "broken" is refused, an empty text has nothing to learn.
Prepared bytes_or_error(const TypedRow& row) {
  const std::string& text = row.text.scalar;
  if (text.starts_with("broken")) refuse(row.where, str("has ", text.size(), " bytes and is broken"), "mend it");
  Prepared out;
  const std::vector<int32_t> ids(text.begin(), text.begin() + long(std::min<size_t>(text.size(), 8)));
  out.cut_tokens = int64_t(text.size() - ids.size());
  if (text.starts_with("merges")) out.mistakes.add(RowMistake::merged_prompt);
  if (text.starts_with("open")) out.mistakes.add(RowMistake::open_answer);
  if (text.starts_with("masked")) out.mistakes.add(RowMistake::masked_answer);
  if (!text.empty()) out.example.emplace().add_sequence(ids);
  return out;
}

class CheckedData : public testing::Test {
 protected:
  void add(const std::string& name, const std::string& text) {
    test::write_file(folder_ / name, text);
    if (!data_.training) data_.training.emplace();
    data_.training->informs.emplace_back().data_files = {(folder_ / name).string()};
    data_.prepare = bytes_or_error;
  }
  CheckedRows checked() {
    all_.clear();
    return check_rows(data_, [this](const BadRow& row) { all_.push_back(row); });
  }
  std::string name_of(const std::string& where) const {
    return test::replaced(where, folder_.path().string() + "/", "");
  }
  const test::TemporaryFolder folder_;
  RunData data_;
  std::vector<BadRow> all_;
};

TEST_F(CheckedData, EveryBadRowIsFoundAndGrouped) {
  add("a.jsonl",
      "{\"text\": \"good\"}\n{\"text\": \"broken\"}\nnonsense\n{\"txt\": \"x\"}\n{\"text\": \"broken too\"}\n[1]\n"
      "{\"text\": \"far too long\"}\n{\"text\": \"\"}\n");
  add("b.csv", "text\ngood\na,b\n");
  add("c.txt", "good\n\xFF\n");
  const CheckedRows found = checked();
  EXPECT_EQ(found.rows, 12);
  EXPECT_EQ(found.bad, 9);
  std::vector<std::string> where;
  for (const BadRow& row : all_) where.push_back(name_of(row.where));
  EXPECT_EQ(where, (std::vector<std::string>{"a.jsonl:2", "a.jsonl:3:1", "a.jsonl:4", "a.jsonl:5", "a.jsonl:6",
                                             "a.jsonl:7", "a.jsonl:8", "b.csv:3", "c.txt:2"}));
  ASSERT_EQ(found.groups.size(), 8u) << "both rows of broken bytes are one group";
  EXPECT_EQ(found.groups[0].count, 2);
  EXPECT_FALSE(found.groups[0].alike);
  EXPECT_EQ(found.groups[0].first[1].problem, "has 10 bytes and is broken");
  EXPECT_EQ(found.groups[0].remedy, "mend it");
  EXPECT_EQ(all_[5].problem, "the row is longer than its limit and loses 4 tokens");
  EXPECT_EQ(all_[6].problem, "the row has no tokens to train on, so it is left out");
  EXPECT_EQ(all_[8].inform, "mixture.informs[2]");
}

TEST_F(CheckedData, ARowThatIsTrainedAllTheSameIsAWarning) {
  add("a.jsonl",
      "{\"text\": \"good\"}\n{\"text\": \"merges\"}\n{\"text\": \"broken\"}\n{\"text\": \"open\"}\n{\"text\": "
      "\"masked\"}\n");
  const CheckedRows found = checked();
  EXPECT_EQ(found.bad, 1);
  EXPECT_EQ(found.warnings, 3);
  ASSERT_EQ(found.groups.size(), 4u);
  EXPECT_TRUE(found.groups[0].warning);
  EXPECT_FALSE(found.groups[1].warning);
  EXPECT_TRUE(found.groups[2].warning);
  EXPECT_TRUE(found.groups[3].warning);
  EXPECT_TRUE(all_[0].warning);
  EXPECT_EQ(all_[2].problem,
            "an answer that is learned does not end in a stop token, so the model does not learn to stop there");
  EXPECT_EQ(all_[3].problem, "nothing is learned of one of the answers");
}

TEST_F(CheckedData, AFileThatBreaksOffIsOneBadRowAndTheNextIsRead) {
  add("a.json", "[{\"text\": \"good\"}, {\"text\": ");
  add("b.jsonl", "{\"text\": \"broken\"}\n");
  const CheckedRows found = checked();
  EXPECT_EQ(found.bad, 2);
  EXPECT_EQ(found.rows, 2) << "the list is read up to where it breaks off";
  EXPECT_EQ(name_of(all_[1].where), "b.jsonl:1");
}

TEST_F(CheckedData, AGroupShowsItsFirstRows) {
  std::string lines;
  for (int i = 0; i < 30; ++i) lines += "{\"text\": \"broken\"}\n";
  add("a.jsonl", lines);
  const CheckedRows found = checked();
  ASSERT_EQ(found.groups.size(), 1u);
  EXPECT_EQ(found.groups[0].count, 30);
  EXPECT_TRUE(found.groups[0].alike);
  EXPECT_EQ(found.groups[0].first.size(), rows_in_group);
  EXPECT_EQ(all_.size(), 30u);
}

TEST_F(CheckedData, RowsOfAnInformComeInOrderWithTheirErrors) {
  add("a.jsonl", "{\"text\": \"a\"}\nnonsense\n{\"text\": \"c\"}\n{\"text\": \"d\"}\n");
  data_.training->informs[0].num_rows = 3;
  InformReader reader(*data_.training, 0, data_.prepare);
  std::string order;
  reader.read([&](PreparedRow& row) {
    order += row.error ? "!" : row.row.text.scalar;
    return true;
  });
  EXPECT_EQ(order, "a!c") << "a row that cannot be read counts as one of num_rows";
}

}  // namespace
}  // namespace easydel::data
