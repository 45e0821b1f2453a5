// What layers compute sequence by sequence, which rows are requested, and which rows belong to which sequence.
#include "easydel/nn/stream.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "easydel/base/error.h"
#include "easydel/nn/cache.h"
#include "easydel/nn/pass.h"

namespace easydel::nn {
namespace {

using Offsets = std::vector<int64_t>;

CacheShape shape_of_states(std::vector<std::vector<int64_t>> states) {
  CacheShape out;
  out.layers = {{0, 0, 0, std::move(states)}};
  return out;
}

TEST(Stream, ContinuesARecurrenceOfAFamily) {
  Cache cache(shape_of_states({{2}}), 2, 4);
  const auto run = [](Pass& pass, const Tensor& x) {
    std::vector<Tensor> out;
    pass.stream().each_sequence(0, 0, at::zeros({2}), [&](int64_t begin, int64_t end, const Tensor& before) {
      Tensor sum = before;
      for (int64_t t = begin; t < end; ++t) out.push_back(sum = sum + x[t]);
      return sum;
    });
    return at::cat(out);
  };
  const Tensor x = at::randn({5, 2});
  Pass whole = Pass::over({0, 5});
  const Tensor expected = run(whole, x);
  std::vector<Tensor> found;
  for (const auto& [begin, end] : {std::pair(0, 2), std::pair(2, 5)}) {
    const auto memory = cache.next({1}, {end - begin});
    Pass pass = Pass::next(*memory);
    found.push_back(run(pass, x.slice(0, begin, end)));
    pass.finish();
  }
  EXPECT_TRUE(at::cat(found).equal(expected));
  EXPECT_TRUE(cache.next({0}, {0})->take_states(0, 0).eq(0).all().item<bool>());
}

TEST(Stream, GivesTheRequestedRows) {
  Pass pass = Pass::over({0, 3, 3, 7});
  const Tensor x = at::arange(14, at::kFloat).view({7, 2});
  EXPECT_TRUE(pass.stream().requested_rows(x).equal(x));
  pass.stream().requested = {1, 0, 2};
  EXPECT_EQ(pass.stream().requested_tokens(), 3);
  EXPECT_TRUE(pass.stream().requested_rows(x).equal(x.index_select(0, at::tensor({2, 5, 6}, at::kLong))));
}

TEST(Stream, HasZerosForMaskedTokens) {
  Pass pass = Pass::over({0, 3});
  const Tensor x = at::arange(1, 7, at::kFloat).view({3, 2});
  EXPECT_TRUE(pass.stream().visible(x).equal(x));
  pass.stream().masked = at::arange(3, at::kLong).eq(0);
  EXPECT_TRUE(pass.stream().visible(x).equal(at::tensor({0.0f, 0.0f, 3.0f, 4.0f, 5.0f, 6.0f}).view({3, 2})));
}

TEST(Stream, MakesAnglesOnceForAllCopies) {
  Pass pass = Pass::over({0, 4});
  const Pass copy = pass;
  ops::RopeSpec rope;
  rope.dim = 8;
  EXPECT_EQ(&pass.stream().rope_table(rope), &copy.stream().rope_table(rope));
  pass.stream().choices(3).resize(4);
  EXPECT_EQ(copy.stream().choices(3).size(), 4u);
}

TEST(Stream, SaysWhichRowsBelongToWhichSequence) {
  Pass pass = Pass::over({0, 3, 3, 7});
  Stream& stream = pass.stream();
  EXPECT_EQ(stream.row_offsets(7), (Offsets{0, 3, 3, 7}));
  EXPECT_TRUE(stream.row_sequences(7).equal(at::tensor({0, 0, 0, 2, 2, 2, 2}, at::kLong)));
  EXPECT_TRUE(stream.row_tokens(7).equal(at::arange(7, at::kLong)));
  EXPECT_THROW((void)stream.row_offsets(6), Bug);
  // After the mixer of a last layer.
  stream.requested = {1, 0, 2};
  EXPECT_EQ(stream.row_offsets(3), (Offsets{0, 1, 1, 3}));
  EXPECT_TRUE(stream.row_sequences(3).equal(at::tensor({0, 2, 2}, at::kLong)));
  EXPECT_TRUE(stream.row_tokens(3).equal(at::tensor({2, 5, 6}, at::kLong)));
  EXPECT_EQ(stream.row_offsets(7), (Offsets{0, 3, 3, 7}));
  // Of the tokens that have labels.
  stream.head_tokens = at::tensor({0, 2, 3, 6}, at::kLong);
  EXPECT_EQ(stream.row_offsets(4), (Offsets{0, 2, 2, 4}));
  EXPECT_TRUE(stream.row_sequences(4).equal(at::tensor({0, 0, 2, 2}, at::kLong)));
  EXPECT_TRUE(stream.row_tokens(4).equal(stream.head_tokens));
  EXPECT_EQ(stream.row_offsets(7), (Offsets{0, 3, 3, 7}));
}

TEST(RowScope, SaysOfOtherRowsWhichBelongToWhichSequence) {
  Cache cache(shape_of_states({{1}}), 3, 16);
  cache.next({0, 2}, {5, 2})->finish();
  const auto memory = cache.next({0, 1, 2}, {2, 3, 4});
  Pass pass = Pass::next(*memory, {7, 3, 3});  // the last three tokens of the last sequence are generated
  Stream& stream = pass.stream();
  std::vector<TokenSpan> prompts;
  for (const TokenSpan& span : stream.spans())
    if (span.prompt) prompts.push_back(span);
  {
    const RowScope keys(stream, RowScope::Rows::keys, prompts);
    EXPECT_EQ(stream.row_offsets(13), (Offsets{0, 7, 10, 13}));
    EXPECT_THROW((void)stream.row_offsets(9), Bug);  // number of tokens
    EXPECT_THROW((void)stream.row_tokens(13), Bug);  // those of earlier passes are not tokens of this one
    const Tensor order = at::tensor({12, 0, 7, 7}, at::kLong);
    const RowScope taken(stream, 13, [&order] { return order; });
    EXPECT_THROW((void)stream.row_offsets(4), Bug);
    EXPECT_THROW((void)stream.row_sequences(13), Bug);
    EXPECT_TRUE(stream.row_sequences(4).equal(at::tensor({2, 0, 1, 1}, at::kLong)));
  }
  {
    const RowScope tokens(stream, RowScope::Rows::tokens, prompts);
    EXPECT_EQ(stream.row_offsets(6), (Offsets{0, 2, 5, 6}));
    EXPECT_TRUE(stream.row_tokens(6).equal(at::tensor({0, 1, 2, 3, 4, 5}, at::kLong)));
    const RowScope taken(stream, 6, [] { return at::tensor({5, 1}, at::kLong); });
    EXPECT_TRUE(stream.row_tokens(2).equal(at::tensor({5, 1}, at::kLong)));
  }
  {
    const RowScope pooled(stream, RowScope::Rows::sequences);
    EXPECT_EQ(stream.row_offsets(3), (Offsets{0, 1, 2, 3}));
    EXPECT_THROW((void)stream.row_tokens(3), Bug);
  }
  EXPECT_EQ(stream.row_offsets(9), (Offsets{0, 2, 5, 9}));
}

}  // namespace
}  // namespace easydel::nn
