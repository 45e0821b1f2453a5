// What a pass runs over, and that attention continues from a memory as it runs over whole texts.
#include "easydel/nn/pass.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include "easydel/base/error.h"
#include "easydel/nn/cache.h"
#include "easydel/nn/pass_rows.h"

namespace easydel::nn {
namespace {

CacheShape shape(int64_t heads, int64_t k_dim, int64_t v_dim, std::vector<std::vector<int64_t>> states = {}) {
  CacheShape out;
  out.layers = {{heads, k_dim, v_dim, std::move(states)}};
  return out;
}

std::vector<std::vector<int64_t>> numbers(const std::vector<TokenSpan>& spans) {
  std::vector<std::vector<int64_t>> out;
  for (const TokenSpan& s : spans) out.push_back({s.sequence, s.begin, s.end, s.position, s.prompt, s.prompt_length});
  return out;
}
using Numbers = std::vector<std::vector<int64_t>>;

// Moves a slot on by tokens that nobody looks at.
void fill(Cache& cache, int64_t slot, int64_t tokens) { cache.next({slot}, {tokens})->finish(); }

TEST(Pass, OverWholeTextsIsAllPrompt) {
  const Pass pass = Pass::over({0, 3, 3, 7});
  EXPECT_EQ(numbers(pass.stream().spans()), (Numbers{{0, 0, 3, 0, 1, 3}, {2, 3, 7, 0, 1, 4}}));
  EXPECT_TRUE(pass.stream().positions.equal(at::tensor({0, 1, 2, 0, 1, 2, 3}, at::kLong)));
}

TEST(Pass, TellsPromptTokensFromGeneratedOnes) {
  Cache cache(shape(1, 2, 2), 4, 16);
  fill(cache, 1, 5), fill(cache, 2, 2), fill(cache, 3, 4);
  // A prompt that begins, a generated token, a prompt that ends and goes on to generated tokens, nothing new.
  const auto memory = cache.next({0, 1, 2, 3}, {4, 1, 5, 0});
  const Pass pass = Pass::next(*memory, {6, 5, 4, 4});
  EXPECT_EQ(numbers(pass.stream().spans()),
            (Numbers{{0, 0, 4, 0, 1, 6}, {1, 4, 5, 5, 0, 5}, {2, 5, 7, 2, 1, 4}, {2, 7, 10, 4, 0, 4}}));
  EXPECT_TRUE(pass.stream().positions.equal(at::tensor({0, 1, 2, 3, 5, 2, 3, 4, 5, 6}, at::kLong)));
  EXPECT_EQ(numbers(Pass::next(*memory).stream().spans()),
            (Numbers{{0, 0, 4, 0, 1, 4}, {1, 4, 5, 5, 1, 6}, {2, 5, 10, 2, 1, 7}}));
  EXPECT_THROW(Pass::next(*memory, {1}), Bug);
}

TEST(Pass, KnowsWhatIsRequested) {
  Pass pass = Pass::over({0, 1});
  EXPECT_FALSE(pass.requests("expert_tokens"));
  pass.request("expert_tokens");
  EXPECT_TRUE(pass.requests("expert_tokens"));
  EXPECT_TRUE(Pass(pass).requests("expert_tokens"));
}

TEST(Pass, AttendsThroughAMemoryAsOverTheWholeText) {
  constexpr int64_t length = 11;
  const Tensor q = at::randn({length, 4, 8}), k = at::randn({length, 2, 8}), v = at::randn({length, 2, 6});
  ops::AttentionSpec spec;
  spec.scale = 0.3;
  ops::RopeSpec rope;
  rope.dim = 8;
  Pass whole = Pass::over({0, length});
  const Tensor expected = whole.attend(0, spec, q, k, v, &whole.stream().rope_table(rope));
  Cache cache(shape(2, 8, 6), 2, length, 4);
  std::vector<Tensor> found;
  int64_t begin = 0;
  for (const int64_t count : {5, 1, 2, 3}) {
    // Another sequence before it in the pass.
    const auto memory = cache.next({1, 0}, {2, count});
    Pass pass = Pass::next(*memory);
    const auto rows = [&](const Tensor& t) { return at::cat({t.slice(0, 0, 2), t.slice(0, begin, begin + count)}); };
    found.push_back(pass.attend(0, spec, rows(q), rows(k), rows(v), &pass.stream().rope_table(rope)).slice(0, 2));
    pass.finish();
    begin += count;
  }
  EXPECT_TRUE(at::cat(found).equal(expected));
  EXPECT_EQ(cache.length(0), length);
  EXPECT_EQ(cache.length(1), 8);
}

TEST(Pass, HasAStreamOfTextAndOthersByName) {
  Pass pass = Pass::over({0, 3});
  EXPECT_EQ(&pass.stream(), &pass.stream(text_stream));
  EXPECT_EQ(pass.stream("vision").tokens(), 0);
  pass.stream("vision").cu_seqlens = {0, 2};
  EXPECT_EQ(pass.stream("vision").tokens(), 2);
  EXPECT_EQ(pass.stream().tokens(), 3);
}

TEST(Pass, DropsAttentionWeightsOnlyWhileItTrains) {
  constexpr int64_t length = 40;
  const Tensor q = at::randn({length, 2, 8}), k = at::randn({length, 2, 8}), v = at::randn({length, 2, 8});
  ops::AttentionSpec spec;
  spec.dropout = 0.5;
  const auto attended = [&](bool training, int64_t first_token) {
    Pass pass = Pass::over({0, length});
    pass.random().training = training;
    pass.random().first_token = first_token;
    return pass.attend(0, spec, q, k, v);
  };
  const Tensor plain = attended(false, 0), dropped = attended(true, 0);
  EXPECT_TRUE(plain.equal(attended(false, 7)));
  EXPECT_FALSE(plain.equal(dropped));
  EXPECT_TRUE(dropped.equal(attended(true, 0)));
  EXPECT_FALSE(dropped.equal(attended(true, 7)));
}

TEST(Pass, ReadsRowsOfEarlierTokensBack) {
  constexpr int64_t length = 9, dim = 6;
  const Tensor row = at::randn({length, dim}), q = at::randn({length, 3, 4});
  ops::AttentionSpec spec;
  spec.scale = 0.5;
  Pass whole = Pass::over({0, length});
  const KeyRows all(whole, 0, 0, row);
  const Tensor expected = all.attend(spec, whole.stream().spans(), q, 4, 2);
  EXPECT_TRUE(all.up_to(whole.stream().spans()).equal(row));

  Cache cache(shape(2, dim, 0), 1, length, 4);
  std::vector<Tensor> found, chosen;
  int64_t begin = 0;
  for (const int64_t count : {4, 5}) {
    const auto memory = cache.next({0}, {count});
    Pass pass = Pass::next(*memory);
    const auto part = [&](const Tensor& t) { return t.slice(0, begin, begin + count); };
    // The second of two heads of the layer.
    const KeyRows rows(pass, 0, 1, part(row));
    const std::vector<TokenSpan> spans = pass.stream().spans();
    EXPECT_TRUE(rows.up_to(spans).equal(row.slice(0, 0, begin + count)));
    found.push_back(rows.attend(spec, spans, part(q), 4, 2));
    // Where each token chooses all keys up to itself, nothing changes.
    std::vector<KeyChoice> choices;
    for (int64_t t = begin; t < begin + count; ++t) choices.push_back({at::arange(t + 1, at::kLong), false});
    chosen.push_back(rows.attend(spec, spans, part(q), 4, 2, choices));
    const Tensor made = rows.up_to(spans).unsqueeze(1);
    EXPECT_TRUE(
        rows.attend_expanded(spec, spans, part(q), made.narrow(2, 0, 4), made.narrow(2, 0, 2)).equal(found.back()));
    pass.finish();
    begin += count;
  }
  EXPECT_TRUE(at::cat(found).equal(expected));
  EXPECT_TRUE(at::cat(chosen).equal(expected));
}

}  // namespace
}  // namespace easydel::nn
