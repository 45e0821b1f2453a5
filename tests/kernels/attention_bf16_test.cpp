// The forward of attention in the orders of bf16.
#include <cstring>

#include "kernels/attention_contract.h"

namespace easydel::kernels {
namespace {

using namespace testing;

class AttentionInBf16 : public ::testing::TestWithParam<AccumulationOrder> {};
INSTANTIATE_TEST_SUITE_P(Orders, AttentionInBf16,
                         ::testing::Values(AccumulationOrder::bf16_pairs, AccumulationOrder::bf16_tile),
                         [](const auto& order) { return std::string(name(order.param)); });

// A problem in bf16; the exact one is of the same numbers.
struct ShortProblem : Problem {
  AccumulationOrder order = AttentionInBf16::GetParam();
  std::vector<bf16> short_q, short_k, short_v;

  ShortProblem(const AttentionSpec& s, const std::vector<int64_t>& lengths, unsigned seed, float size = 1)
      : Problem(s, lengths, seed, size) {
    narrow_all();
  }
  void narrow_all() {
    short_q = narrowed(q), short_k = narrowed(k), short_v = narrowed(v);
    q = widened(short_q), k = widened(short_k), v = widened(short_v);
  }
  Attended attended(Executor& executor) const {
    Attended a{std::vector<float>(size_t(tokens * spec.heads * spec.v_dim), 99.0f),
               std::vector<float>(size_t(tokens * spec.heads), 99.0f)};
    attend_into(executor, sequences, a);
    return a;
  }
  void attend_into(Executor& executor, std::span<const AttentionSequence> some, Attended& to) const {
    const int64_t page = some[0].page_tokens;
    attend(executor, spec, some, heads_of(short_q, spec.heads, spec.head_dim),
           heads_of(short_k, spec.kv_heads, spec.head_dim, page), heads_of(short_v, spec.kv_heads, spec.v_dim, page),
           heads_of(to.out, spec.heads, spec.v_dim), to.lse.data(), order);
  }
};

TEST_P(AttentionInBf16, HasTheBitsOfTheContractOnEveryInstructionSet) {
  for_contract_specs([](const AttentionSpec& spec, float size) {
    const ShortProblem p(spec, {1, 63, 0, 64, 65, 200}, 3, size);
    const std::vector<float> expected = rows_by_contract(p, PlainRows{p, p.order});
    on_every_isa([&] { EXPECT_TRUE(same_bits(p.attended(serial_executor()).out, expected)) << text(spec); });
  });
}

TEST_P(AttentionInBf16, MergesChunksOfKeysInTheContractsOrder) {
  AttentionSpec spec = spec_of(2, 1, 8, 8);
  for (const int64_t window : {0, 1501}) {
    spec.window = window;
    ShortProblem p(spec, {2100}, 4, 2);
    expect_merged_chunks(p, PlainRows{p, p.order}, [&](Executor& executor) { return p.attended(executor).out; });
  }
}

// The weights of values are rounded to eight bits; the sum of weights is not.
TEST_P(AttentionInBf16, IsNearTheExactOneForEverySpec) {
  for (const AttentionSpec& spec : specs()) {
    const ShortProblem p(spec, {1, 5, 0, 130, 17}, 5);
    const Exact e = exact(p);
    const Attended a = p.attended(pool_of_two());
    for (size_t i = 0; i < a.out.size(); ++i) ASSERT_NEAR(a.out[i], e.out[i], 8e-3) << text(spec) << " at " << i;
    for (size_t i = 0; i < a.lse.size(); ++i) ASSERT_NEAR(a.lse[i], e.lse[i], 3e-6) << text(spec) << " at " << i;
  }
}

TEST_P(AttentionInBf16, HasTheSameBitsOnEveryInstructionSetAndTeamForEverySpec) {
  for (const AttentionSpec& spec : specs())
    for (const bool strange : {false, true}) {
      ShortProblem p(spec, {1, 5, 0, 130, 17}, 6, 3);
      if (strange) {
        make_hostile(p);
        p.narrow_all();
      }
      expect_the_same_everywhere(p, text(spec) + (strange ? ", strange" : ""));
    }
}

TEST_P(AttentionInBf16, GivesTheSameBitsHoweverAPromptIsCut) {
  std::vector<AttentionSpec> all = specs();
  all.push_back(spec_of(6, 2, 64, 64)), all.push_back(spec_of(4, 1, 128, 96));
  for (const AttentionSpec& spec : all) {
    if (!spec.causal) continue;
    constexpr int64_t length = 300;
    const ShortProblem whole(spec, {length}, 7, 2);
    const Attended expected = whole.attended(pool_of_two());
    for (const int64_t piece : {1, 5, 64, 99, 299}) {
      ShortProblem cut = whole;
      Attended got = expected;
      std::fill(got.out.begin(), got.out.end(), 0.0f), std::fill(got.lse.begin(), got.lse.end(), 0.0f);
      for (int64_t begin = 0; begin < length; begin += piece) {
        const int64_t n = std::min(piece, length - begin);
        // Keys of later pieces exist but are invisible, and hostile.
        const AttentionSequence s{.first_query = begin, .queries = n, .past = begin, .keys = begin + n};
        cut.short_k = whole.short_k, cut.short_v = whole.short_v;
        const bf16 nan{0x7fc0};
        std::fill(cut.short_k.begin() + (begin + n) * spec.kv_heads * spec.head_dim, cut.short_k.end(), nan);
        std::fill(cut.short_v.begin() + (begin + n) * spec.kv_heads * spec.v_dim, cut.short_v.end(), nan);
        cut.attend_into(pool_of_two(), {&s, 1}, got);
      }
      EXPECT_TRUE(same_bits(got.out, expected.out)) << text(spec) << " by " << piece;
      EXPECT_TRUE(same_bits(got.lse, expected.lse)) << text(spec) << " by " << piece;
    }
  }
}

// Alone a row has the bits that it has among those that see more or less, of finite values or not.
TEST_P(AttentionInBf16, NeverMultipliesWhatARowCannotSee) {
  for (const int64_t window : {0, 7, 70}) {
    AttentionSpec spec = spec_of(window == 7 ? 3 : 13, 1, 32, 32);
    spec.window = window;
    ShortProblem p(spec, {200}, 8);
    const Attended clean = p.attended(serial_executor());
    const int64_t row = spec.heads * 32;
    for (const int64_t strange : {10, 64, 65, 127, 150}) {
      ShortProblem with = p;
      for (int64_t d = 0; d < 32; ++d)
        with.short_k[size_t(strange * 32 + d)] = {0x7fc0}, with.short_v[size_t(strange * 32 + d)] = {0x7f80};
      on_every_isa([&] {
        const Attended a = with.attended(serial_executor());
        for (int64_t t = 0; t < 200; ++t) {
          const size_t from = size_t(t * row), bytes = size_t(row) * sizeof(float);
          if (!sees(spec, t, strange))
            EXPECT_EQ(std::memcmp(&a.out[from], &clean.out[from], bytes), 0) << t << " without " << strange;
          else
            EXPECT_TRUE(std::isnan(a.out[from])) << t << " with " << strange;
        }
        for (const int64_t t : {66, 140, 199}) {  // alone
          if (sees(spec, t, strange)) continue;
          const AttentionSequence alone{.first_query = t, .queries = 1, .past = t, .keys = t + 1};
          Attended one = clean;
          std::fill_n(one.out.begin() + t * row, row, 0.0f);
          with.attend_into(serial_executor(), {&alone, 1}, one);
          EXPECT_TRUE(same_bits(one.out, clean.out)) << t << " without " << strange;
        }
      });
    }
  }
}

TEST_P(AttentionInBf16, DecodesFromPagesWithTheBitsOfTheWholePrompt) {
  struct Case {
    int64_t heads, kv_heads, dim, v_dim, window, page;
  };
  for (const Case c : {Case{1, 1, 32, 16, 0, 40},
                       {6, 2, 64, 64, 0, 64},
                       {6, 2, 64, 64, 0, 128},
                       {12, 1, 96, 80, 0, 15},
                       {17, 1, 64, 33, 0, 30},
                       {4, 4, 40, 48, 0, 1},
                       {6, 2, 64, 64, 101, 6}}) {
    AttentionSpec spec = spec_of(c.heads, c.kv_heads, c.dim, c.v_dim);
    spec.window = c.window;
    constexpr int64_t length = 600;
    const ShortProblem p(spec, {length}, 12, 2);
    const Attended whole = p.attended(pool_of_two());
    std::vector<int32_t> pages(size_t(divide_up(length, c.page)));
    std::iota(pages.rbegin(), pages.rend(), 0);
    ShortProblem paged = p;
    const int64_t k_row = c.kv_heads * c.dim, v_row = c.kv_heads * c.v_dim;
    const size_t tokens = pages.size() * size_t(c.page);
    paged.short_k.assign(tokens * size_t(k_row), {0x7fc0}), paged.short_v.assign(tokens * size_t(v_row), {0x7fc0});
    for (int64_t t = 0; t < length; ++t) {
      const int64_t at = pages[size_t(t / c.page)] * c.page + t % c.page;
      std::copy_n(p.short_k.begin() + t * k_row, k_row, paged.short_k.begin() + at * k_row);
      std::copy_n(p.short_v.begin() + t * v_row, v_row, paged.short_v.begin() + at * v_row);
    }
    on_every_isa([&] {
      for (const int64_t last : {0, 63, 64, 511, 512, 599})
        for (const int64_t queries : {1, 3}) {
          if (last < queries) continue;
          const int64_t first = last + 1 - queries, row = c.heads * c.v_dim;
          const AttentionSequence s{.first_query = first, .queries = queries, .past = first, .keys = last + 1};
          AttentionSequence in_pages = s;
          in_pages.pages = pages.data(), in_pages.page_tokens = c.page;
          const auto rows_of = [&](const Attended& a) {
            return std::vector<float>(a.out.begin() + first * row, a.out.begin() + (last + 1) * row);
          };
          Attended a = whole;
          std::ranges::fill(a.out, 0.0f);
          p.attend_into(pool_of_two(), {&s, 1}, a);
          EXPECT_TRUE(same_bits(rows_of(a), rows_of(whole))) << text(spec) << " at " << last;
          std::ranges::fill(a.out, 0.0f);
          paged.attend_into(pool_of_five(), {&in_pages, 1}, a);
          EXPECT_TRUE(same_bits(rows_of(a), rows_of(whole))) << text(spec) << " in pages at " << last;
        }
    });
  }
}

TEST_P(AttentionInBf16, LooksAcrossToKeysOfAnotherLength) {
  AttentionSpec spec = spec_of(2, 2, 12, 12);
  spec.causal = false;
  ShortProblem p(spec, {}, 11);
  p.sequences = {{.first_query = 0, .queries = 9, .keys = 131, .first_key = 0},
                 {.first_query = 9, .queries = 4, .keys = 0}};
  p.tokens = 13, p.kv_tokens = 131;
  p.fill(11, 1), p.narrow_all();
  const Exact e = exact(p);
  on_every_isa([&] {
    const Attended a = p.attended(pool_of_two());
    for (size_t i = 0; i < a.out.size(); ++i) ASSERT_NEAR(a.out[i], e.out[i], 4e-3) << i;
    EXPECT_EQ(a.out.back(), 0.0f);  // no key to see
    EXPECT_EQ(a.lse.back(), -INFINITY);
  });
}

TEST(AttentionOrder, IsThatOfProductsWhereAllIsBf16) {
  constexpr DType wide = DType::f32, narrow = DType::bf16;
  EXPECT_EQ(attention_order(narrow, narrow, narrow), bf16_order());
  EXPECT_EQ(attention_order(wide, narrow, narrow), AccumulationOrder::fp32_chain);
  EXPECT_EQ(attention_order(narrow, wide, narrow), AccumulationOrder::fp32_chain);
  EXPECT_EQ(attention_order(narrow, narrow, wide), AccumulationOrder::fp32_chain);
}

TEST_P(AttentionInBf16, IsOfBf16Alone) {
  const Problem p(spec_of(1, 1, 16, 16), {4}, 1);
  std::vector<float> out(4 * 16);
  EXPECT_THROW(attend(serial_executor(), p.spec, p.sequences, p.q_heads(), p.k_heads(), p.v_heads(),
                      heads_of(out, 1, 16), nullptr, GetParam()),
               Bug);
}

}  // namespace
}  // namespace easydel::kernels
