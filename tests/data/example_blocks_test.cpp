#include "easydel/data/example_blocks.h"

#include <gtest/gtest.h>

#include <malloc.h>

#include <numeric>

#include "easydel/base/error.h"
#include "easydel/data/shuffle.h"

namespace easydel::data {
namespace {

using Ids = std::vector<int32_t>;

void expect_equal(const Example& a, const Example& b) {
  EXPECT_EQ(a.tokens, b.tokens);
  EXPECT_EQ(a.labels, b.labels);
  EXPECT_EQ(a.lengths, b.lengths);
  ASSERT_EQ(a.columns.size(), b.columns.size());
  for (const Column& column : a.columns) {
    const Column* const other = b.find(column.name);
    ASSERT_NE(other, nullptr) << column.name;
    EXPECT_EQ(column.per, other->per);
    EXPECT_EQ(column.values, other->values) << column.name;
  }
}

ExampleBlocks blocks_of(const std::vector<Example>& examples) {
  ExampleBlocks out;
  for (const Example& one : examples) out.add(one);
  out.finish();
  return out;
}

// Examples of every form that methods make: one or several sequences, none, labels of the next token or of the token
// itself, of neither, columns of every kind.
std::vector<Example> odd_examples() {
  std::vector<Example> out;
  Stream stream(1, Use::epoch, 0);
  for (int i = 0; i < 300; ++i) {
    Example& one = out.emplace_back();
    for (uint64_t s = 0; s < stream.below(4); ++s) {
      Ids ids(stream.below(20));
      std::vector<uint8_t> learn(ids.size());
      for (int32_t& id : ids) id = int32_t(stream.below(i < 200 ? 60000 : 200000));
      for (uint8_t& bit : learn) bit = uint8_t(stream.below(2));
      i % 3 == 0 ? one.add_unshifted(ids, learn) : one.add_sequence(ids, learn);
    }
    if (!one.labels.empty() && i % 5 == 0) one.labels.back() = 77;
    if (!one.labels.empty() && i % 7 == 0) one.labels.front() = 70000;
    std::vector<float> of_tokens(one.tokens.size());
    std::iota(of_tokens.begin(), of_tokens.end(), float(i));
    one.set({"of tokens", Column::Per::token, of_tokens});
    if (i % 2) one.set({"of sequences", Column::Per::sequence, std::vector<int64_t>(one.lengths.size(), i)});
    if (i % 4 == 3) one.set({"of examples", Column::Per::example, std::vector<float>{float(i)}});
  }
  return out;
}

TEST(ExampleBlocks, GiveBackWhatWasAdded) {
  const std::vector<Example> examples = odd_examples();
  const ExampleBlocks blocks = blocks_of(examples);
  ASSERT_EQ(blocks.size(), int64_t(examples.size()));
  int64_t tokens = 0, labels = 0;
  for (size_t i = 0; i < examples.size(); ++i) {
    expect_equal(blocks.at(int64_t(i)), examples[i]);
    EXPECT_EQ(blocks.tokens_of(int64_t(i)), int64_t(examples[i].tokens.size()));
    EXPECT_EQ(blocks.labels_of(int64_t(i)), examples[i].labelled());
    tokens += int64_t(examples[i].tokens.size()), labels += examples[i].labelled();
  }
  EXPECT_EQ(blocks.tokens(), tokens);
  EXPECT_EQ(blocks.labels(), labels);
  EXPECT_THROW((void)blocks.at(blocks.size()), Bug);
}

TEST(ExampleBlocks, GivePartsOfAnExample) {
  const std::vector<Example> examples = odd_examples();
  const ExampleBlocks blocks = blocks_of(examples);
  for (size_t i = 0; i < examples.size(); ++i) {
    const Example& whole = examples[i];
    const size_t begin = whole.tokens.size() / 3, end = whole.tokens.size() - whole.tokens.size() / 4;
    const Example part = blocks.slice(int64_t(i), int64_t(begin), int64_t(end));
    EXPECT_EQ(part.tokens, Ids(whole.tokens.begin() + long(begin), whole.tokens.begin() + long(end)));
    EXPECT_EQ(part.labels, Ids(whole.labels.begin() + long(begin), whole.labels.begin() + long(end)));
    EXPECT_EQ(part.lengths, Ids{int32_t(end - begin)});
    EXPECT_EQ(std::get<0>(part.find("of tokens")->values).size(), end - begin);
    EXPECT_EQ(blocks.labels_of(int64_t(i), int64_t(begin), int64_t(end)), part.labelled());
  }
}

// Negative ids come from programs that mark places; they are no 16 bits.
TEST(ExampleBlocks, KeepIdsOfAnySize) {
  for (const int32_t id : {0, 65535, 65536, INT32_MAX, -1}) {
    Example one;
    one.add_sequence(Ids{1, id, 2});
    expect_equal(blocks_of({one}).at(0), one);
  }
}

TEST(ExampleBlocks, GiveWeightsToAllIfSomeHaveThem) {
  Example plain, weighted;
  plain.add_sequence(Ids{1, 2, 3});
  weighted = plain;
  weighted.set({loss_weights, Column::Per::token, std::vector<float>{2, 2, 2}});
  const ExampleBlocks blocks = blocks_of({plain, weighted});
  EXPECT_EQ(std::get<0>(blocks.at(0).find(loss_weights)->values), (std::vector<float>{1, 1, 1}));
  EXPECT_EQ(std::get<0>(blocks.at(1).find(loss_weights)->values), (std::vector<float>{2, 2, 2}));
  EXPECT_EQ(blocks_of({plain}).at(0).find(loss_weights), nullptr);
}

TEST(ExampleBlocks, RefuseColumnsOfAnotherKind) {
  Example one, other;
  one.add_sequence(Ids{1, 2});
  other = one;
  one.set({"x", Column::Per::example, std::vector<float>{1}});
  other.set({"x", Column::Per::example, std::vector<int64_t>{1}});
  EXPECT_THROW(blocks_of({one, other}), Bug);
}

// Bytes of the heap, pages that it mapped among them.
size_t allocated() {
  const struct mallinfo2 info = ::mallinfo2();
  return info.uordblks + info.hblkhd;
}

// Texts of 300 tokens: 2 bytes for a token, its bit, and 13 for the row; 4 bytes if ids are larger than 16 bits.
TEST(ExampleBlocks, CostAFewBytesAToken) {
  constexpr int64_t rows = 20000, length = 300;
  for (const auto& [largest, most] : {std::pair{49152, 2.3}, {150000, 4.3}}) {
    const size_t before = allocated();
    ExampleBlocks blocks;
    for (int64_t row = 0; row < rows; ++row) {
      Ids ids(length);
      for (size_t i = 0; i < ids.size(); ++i) ids[i] = int32_t((row * 7919 + int64_t(i) * 104729) % largest);
      Example one;
      one.add_sequence(ids);
      blocks.add(one);
    }
    blocks.finish();
    const double bytes = double(allocated() - before) / double(rows * length);
    EXPECT_LT(bytes, most);
    EXPECT_GT(bytes, most - 0.5) << "the measure sees the arrays";
  }
}

}  // namespace
}  // namespace easydel::data
