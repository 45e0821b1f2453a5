#include "easydel/data/packing.h"

#include <gtest/gtest.h>

#include <numeric>

#include "easydel/base/error.h"

namespace easydel::data {
namespace {

// A document of `size` tokens first, first + 1, ...
Example document(int32_t first, int size) {
  std::vector<int32_t> ids(size);
  std::iota(ids.begin(), ids.end(), first);
  Example out;
  out.add_sequence(ids);
  return out;
}

std::vector<Example> documents(std::initializer_list<int> sizes) {
  std::vector<Example> out;
  for (const int size : sizes) out.push_back(document(static_cast<int32_t>(100 * (out.size() + 1)), size));
  return out;
}

std::vector<Example> pack(const std::vector<Example>& documents, Packing packing, int64_t row_length,
                          PackingReport& report) {
  ExampleBlocks blocks;
  for (const Example& one : documents) blocks.add(one);
  blocks.finish();
  std::vector<int64_t> all(documents.size());
  std::iota(all.begin(), all.end(), int64_t{0});
  PackedRows packed(packing, row_length);
  packed.add(blocks, all, report);
  std::vector<Example> rows;
  for (int64_t i = 0; i < packed.size(); ++i) {
    rows.push_back(packed.at(blocks, i));
    EXPECT_EQ(packed.tokens_of(i), int64_t(rows.back().tokens.size()));
    EXPECT_EQ(packed.labels_of(blocks, i), rows.back().labelled());
  }
  return rows;
}

std::vector<std::vector<int32_t>> lengths(const std::vector<Example>& rows) {
  std::vector<std::vector<int32_t>> out;
  for (const Example& row : rows) out.push_back(row.lengths);
  return out;
}

using Lengths = std::vector<std::vector<int32_t>>;

// Its tokens' numbers, and one of the document.
Example with_columns(Example document, int64_t number) {
  const size_t tokens = document.tokens.size();
  std::vector<float> values(tokens);
  std::iota(values.begin(), values.end(), static_cast<float>(10 * number));
  document.set({"values", Column::Per::token, values});
  document.set({"number", Column::Per::sequence, std::vector<int64_t>{number}});
  return document;
}

TEST(Packing, ColumnsGoWithTheirTokensAndSequences) {
  std::vector<Example> all = documents({3, 4});
  for (size_t i = 0; i < all.size(); ++i) all[i] = with_columns(all[i], static_cast<int64_t>(i));
  PackingReport report;
  const auto rows = pack(all, Packing::greedy, 5, report);
  ASSERT_EQ(lengths(rows), (Lengths{{3, 2}, {2}}));
  EXPECT_EQ(std::get<0>(rows[0].find("values")->values), (std::vector<float>{0, 1, 2, 10, 11}));
  EXPECT_EQ(std::get<1>(rows[0].find("number")->values), (std::vector<int64_t>{0, 1}));
  EXPECT_EQ(std::get<0>(rows[1].find("values")->values), (std::vector<float>{12, 13}));
  EXPECT_EQ(std::get<1>(rows[1].find("number")->values), (std::vector<int64_t>{1}));
  const auto merged = pack(all, Packing::wrapped, 7, report);
  ASSERT_EQ(lengths(merged), (Lengths{{7}}));
  EXPECT_EQ(merged[0].find("number")->size(), 1u);
  EXPECT_EQ(merged[0].find("values")->size(), 7u);
}

TEST(Packing, ColumnsThatCannotBeMergedAreRefused) {
  std::vector<Example> all = documents({3, 4});
  PackingReport report;
  all[0].set({"reward", Column::Per::example, std::vector<float>{1}});
  EXPECT_THROW(pack(all, Packing::greedy, 9, report), Bug);
  all = documents({3, 4});
  all[1] = with_columns(all[1], 1);
  EXPECT_THROW(pack(all, Packing::greedy, 9, report), Bug);
}

TEST(Packing, GreedyFillsRowsToTheBrimAndKeepsDocumentsApart) {
  PackingReport report;
  const auto rows = pack(documents({5, 4, 2}), Packing::greedy, 4, report);
  EXPECT_EQ(lengths(rows), (Lengths{{4}, {1, 3}, {1, 2}}));
  EXPECT_EQ(report.tokens, 11);
  EXPECT_EQ(report.split, 2);
  // What is cut keeps its label: the last token of a row still predicts the first of the next.
  EXPECT_EQ(rows[0].labels.back(), 104);
  EXPECT_EQ(rows[1].labels, (std::vector<int32_t>{no_label, 201, 202, 203}));
}

TEST(Packing, BestFitTakesTheFullestRowThatHasRoom) {
  PackingReport report;
  const auto rows = pack(documents({3, 6, 2, 7}), Packing::bfd, 10, report);
  EXPECT_EQ(lengths(rows), (Lengths{{7, 3}, {6, 2}}));
  EXPECT_EQ(report.cut, 0);
}

TEST(Packing, BestFitCutsTheEndOfALongerDocumentAndCountsIt) {
  PackingReport report;
  const auto rows = pack(documents({13, 2}), Packing::bfd, 10, report);
  EXPECT_EQ(lengths(rows), (Lengths{{10}, {2}}));
  EXPECT_EQ(report.cut, 1);
  EXPECT_EQ(report.cut_tokens, 3);
  EXPECT_EQ(report.lost_labels, 3);
  EXPECT_EQ(report.text(),
            "2 documents packed into 2 rows of 12 tokens; 1 document was longer than a row and lost 3 tokens");
}

TEST(Packing, SplittingStrategiesLoseNoTokenAndNoLabel) {
  for (const Packing packing : {Packing::greedy, Packing::bfd_split, Packing::first_fit, Packing::wrapped}) {
    const auto all = documents({13, 2, 25, 1, 7, 10, 9});
    int64_t labels = 0, tokens = 0;
    for (const Example& one : all) labels += one.labelled(), tokens += static_cast<int64_t>(one.tokens.size());
    PackingReport report;
    const auto rows = pack(all, packing, 10, report);
    int64_t packed_labels = 0, packed_tokens = 0;
    for (const Example& row : rows) {
      EXPECT_LE(row.tokens.size(), 10u);
      EXPECT_EQ(std::accumulate(row.lengths.begin(), row.lengths.end(), 0), static_cast<int>(row.tokens.size()));
      packed_labels += row.labelled(), packed_tokens += static_cast<int64_t>(row.tokens.size());
    }
    EXPECT_EQ(packed_tokens, tokens) << static_cast<int>(packing);
    EXPECT_EQ(packed_labels, labels) << static_cast<int>(packing);
    EXPECT_EQ(report.tokens, tokens);
  }
}

TEST(Packing, WrappedRowsAreOneSequenceEach) {
  PackingReport report;
  const auto rows = pack(documents({5, 4, 3}), Packing::wrapped, 8, report);
  EXPECT_EQ(lengths(rows), (Lengths{{8}, {4}}));
}

// Rows of a window hold nothing of the other ones.
TEST(Packing, DocumentsAreAddedAWindowAtATime) {
  for (const Packing packing :
       {Packing::greedy, Packing::bfd, Packing::bfd_split, Packing::first_fit, Packing::wrapped}) {
    const auto first = documents({5, 4, 13}), second = documents({2, 11, 6, 1});
    PackingReport apart, together;
    std::vector<Example> want = pack(first, packing, 8, apart);
    for (Example& row : pack(second, packing, 8, apart)) want.push_back(std::move(row));
    ExampleBlocks blocks;
    for (const auto* const part : {&first, &second})
      for (const Example& one : *part) blocks.add(one);
    blocks.finish();
    PackedRows packed(packing, 8);
    packed.add(blocks, std::vector<int64_t>{0, 1, 2}, together);
    packed.add(blocks, std::vector<int64_t>{3, 4, 5, 6}, together);
    ASSERT_EQ(packed.size(), int64_t(want.size()));
    for (int64_t i = 0; i < packed.size(); ++i) {
      EXPECT_EQ(packed.at(blocks, i).tokens, want[size_t(i)].tokens);
      EXPECT_EQ(packed.at(blocks, i).lengths, want[size_t(i)].lengths);
    }
    EXPECT_EQ(together.text(), apart.text());
  }
}

TEST(Packing, FirstFitTakesTheFirstRowThatHasRoom) {
  PackingReport report;
  const auto rows = pack(documents({6, 5, 4, 3, 2}), Packing::first_fit, 10, report);
  EXPECT_EQ(lengths(rows), (Lengths{{6, 4}, {5, 3, 2}}));
}

}  // namespace
}  // namespace easydel::data
