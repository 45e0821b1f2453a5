#include "easydel/kernels/attention.h"

#include "kernels/attention_contract.h"

namespace easydel::kernels {
namespace {

using namespace testing;

TEST(Attention, HasTheBitsOfTheContractOnEveryInstructionSet) {
  for_contract_specs([](const AttentionSpec& spec, float size) {
    const Problem p(spec, {1, 63, 0, 64, 65, 200}, 3, size);
    const std::vector<float> expected = rows_by_contract(p, PlainRows{p});
    on_every_isa([&] { EXPECT_TRUE(same_bits(attended(serial_executor(), p).out, expected)) << text(spec); });
  });
}

TEST(Attention, MergesChunksOfKeysInTheContractsOrder) {
  AttentionSpec spec = spec_of(2, 1, 8, 8);
  for (const int64_t window : {0, 1500}) {
    spec.window = window;
    Problem p(spec, {2100}, 4, 2);
    expect_merged_chunks(p, PlainRows{p}, [&](Executor& executor) { return attended(executor, p).out; });
  }
}

TEST(Attention, IsNearTheExactOneForEverySpec) {
  for (const AttentionSpec& spec : specs()) {
    const Problem p(spec, {1, 5, 0, 130, 17}, 5);
    const Exact e = exact(p);
    on_every_isa([&] {
      const Attended a = attended(pool_of_two(), p);
      for (size_t i = 0; i < a.out.size(); ++i) ASSERT_NEAR(a.out[i], e.out[i], 3e-6) << text(spec) << " at " << i;
      for (size_t i = 0; i < a.lse.size(); ++i) ASSERT_NEAR(a.lse[i], e.lse[i], 3e-6) << text(spec) << " at " << i;
    });
  }
}

TEST(Attention, HasTheSameBitsOnEveryInstructionSetAndTeamForEverySpec) {
  for (const AttentionSpec& spec : specs()) {
    const Problem p(spec, {1, 5, 0, 130, 17}, 6, 3);
    const Attended first = attended(serial_executor(), p);
    on_every_isa([&] {
      for (Executor* const executor : {&serial_executor(), &pool_of_two(), &pool_of_five()}) {
        const Attended again = attended(*executor, p);
        EXPECT_TRUE(same_bits(again.out, first.out)) << text(spec);
        EXPECT_TRUE(same_bits(again.lse, first.lse)) << text(spec);
      }
    });
  }
}

TEST(Attention, GivesTheSameBitsHoweverAPromptIsCut) {
  for (AttentionSpec spec : specs()) {
    if (!spec.causal) continue;
    constexpr int64_t length = 300;
    const Problem whole(spec, {length}, 7, 2);
    const Attended expected = attended(pool_of_two(), whole);
    for (const int64_t piece : {1, 5, 64, 100, 299}) {
      if (piece == 1 && spec.heads > 1) continue;
      Problem cut = whole;
      Attended got = expected;
      std::fill(got.out.begin(), got.out.end(), 0.0f), std::fill(got.lse.begin(), got.lse.end(), 0.0f);
      for (int64_t begin = 0; begin < length; begin += piece) {
        const int64_t n = std::min(piece, length - begin);
        // Keys of later pieces exist but are invisible, and hostile.
        cut.sequences = {{.first_query = begin, .queries = n, .past = begin, .keys = begin + n}};
        cut.k = whole.k, cut.v = whole.v;
        std::fill(cut.k.begin() + (begin + n) * spec.kv_heads * spec.head_dim, cut.k.end(), NAN);
        std::fill(cut.v.begin() + (begin + n) * spec.kv_heads * spec.v_dim, cut.v.end(), NAN);
        attend(pool_of_two(), spec, cut.sequences, cut.q_heads(), cut.k_heads(), cut.v_heads(),
               heads_of(got.out, spec.heads, spec.v_dim), got.lse.data());
      }
      EXPECT_TRUE(same_bits(got.out, expected.out)) << text(spec) << " by " << piece;
      EXPECT_TRUE(same_bits(got.lse, expected.lse)) << text(spec) << " by " << piece;
    }
  }
}

TEST(Attention, NeverMultipliesWhatARowCannotSee) {
  const AttentionSpec spec = spec_of(1, 1, 16, 16);
  Problem p(spec, {20}, 8);
  const auto clean = attended(serial_executor(), p).out;
  for (int64_t i = 10 * 16; i < 20 * 16; ++i) p.k[size_t(i)] = NAN, p.v[size_t(i)] = INFINITY;
  on_every_isa([&] {
    const auto out = attended(serial_executor(), p).out;
    EXPECT_TRUE(same_bits(std::vector<float>(out.begin(), out.begin() + 160),
                          std::vector<float>(clean.begin(), clean.begin() + 160)));
    EXPECT_TRUE(std::isnan(out[10 * 16]));
  });
}

TEST(Attention, ReadsPagesAsItReadsOneStretch) {
  constexpr int64_t page = 16, length = 100;
  const AttentionSpec spec = spec_of(4, 2, 24, 20);
  const Problem p(spec, {length}, 9);
  const auto expected = attended(serial_executor(), p).out;
  const std::vector<int32_t> pages = {6, 0, 3, 5, 1, 2, 4};
  Problem paged = p;
  paged.k.assign(size_t(7 * page * 2 * 24), NAN), paged.v.assign(size_t(7 * page * 2 * 20), NAN);
  for (int64_t t = 0; t < length; ++t) {
    const int64_t at = pages[size_t(t / page)] * page + t % page;
    std::copy_n(p.k.begin() + t * 48, 48, paged.k.begin() + at * 48);
    std::copy_n(p.v.begin() + t * 40, 40, paged.v.begin() + at * 40);
  }
  paged.sequences[0].pages = pages.data(), paged.sequences[0].page_tokens = page;
  on_every_isa([&] { EXPECT_TRUE(same_bits(attended(pool_of_two(), paged).out, expected)); });
}

TEST(Attention, ReadsBf16AsItsWidenedValueAndRoundsTheResultOnce) {
  const AttentionSpec spec = spec_of(4, 2, 24, 20);
  Problem p(spec, {70, 3}, 10);
  const auto q = narrowed(p.q), k = narrowed(p.k), v = narrowed(p.v);
  p.q = widened(q), p.k = widened(k), p.v = widened(v);
  on_every_isa([&] {
    std::vector<bf16> out(size_t(p.tokens * 80));
    attend(serial_executor(), spec, p.sequences, heads_of(q, 4, 24), heads_of(k, 2, 24), heads_of(v, 2, 20),
           heads_of(out, 4, 20), nullptr);
    EXPECT_TRUE(same_bits(out, narrowed(attended(serial_executor(), p).out)));
  });
}

TEST(Attention, DecodesWithTheBitsOfTheWholePromptFromEitherNumberType) {
  struct Case {
    int64_t heads, kv_heads, dim, v_dim, window;
  };
  for (const Case c : {Case{1, 1, 32, 16, 0},
                       {6, 2, 64, 64, 0},
                       {12, 1, 96, 80, 0},
                       {17, 1, 64, 33, 0},
                       {4, 4, 40, 48, 0},
                       {6, 2, 64, 64, 100}}) {
    AttentionSpec spec = spec_of(c.heads, c.kv_heads, c.dim, c.v_dim);
    spec.window = c.window;
    constexpr int64_t length = 600, page = 40;
    Problem p(spec, {length}, 12, 2);
    auto k = narrowed(p.k), v = narrowed(p.v);
    p.k = widened(k), p.v = widened(v);
    const Attended whole = attended(pool_of_two(), p);
    std::vector<int32_t> pages(length / page);
    std::iota(pages.rbegin(), pages.rend(), 0);
    std::vector<bf16> paged_k(k.size()), paged_v(v.size());
    const int64_t k_row = c.kv_heads * c.dim, v_row = c.kv_heads * c.v_dim;
    for (int64_t t = 0; t < length; ++t) {
      const int64_t at = pages[size_t(t / page)] * page + t % page;
      std::copy_n(k.begin() + t * k_row, k_row, paged_k.begin() + at * k_row);
      std::copy_n(v.begin() + t * v_row, v_row, paged_v.begin() + at * v_row);
    }
    on_every_isa([&] {
      for (const int64_t last : {0, 63, 64, 511, 512, 599}) {
        std::vector<float> out(whole.out.size());
        const AttentionSequence s{.first_query = last, .queries = 1, .past = last, .keys = last + 1};
        AttentionSequence in_pages = s;
        in_pages.pages = pages.data(), in_pages.page_tokens = page;
        const int64_t row = c.heads * c.v_dim;
        const std::vector<float> expected(whole.out.begin() + last * row, whole.out.begin() + (last + 1) * row);
        const auto expect = [&](const char* what) {
          EXPECT_TRUE(same_bits(std::vector<float>(out.begin() + last * row, out.begin() + (last + 1) * row), expected))
              << what << ", " << text(spec) << " at " << last;
        };
        const MutableHeads to = heads_of(out, c.heads, c.v_dim);
        attend(pool_of_two(), spec, {&s, 1}, p.q_heads(), p.k_heads(), p.v_heads(), to, nullptr);
        expect("fp32");
        attend(serial_executor(), spec, {&s, 1}, p.q_heads(), heads_of(k, c.kv_heads, c.dim),
               heads_of(v, c.kv_heads, c.v_dim), to, nullptr);
        expect("bf16");
        attend(pool_of_five(), spec, {&in_pages, 1}, p.q_heads(), heads_of(paged_k, c.kv_heads, c.dim, page),
               heads_of(paged_v, c.kv_heads, c.v_dim, page), to, nullptr);
        expect("pages");
      }
    });
  }
}

TEST(Attention, LooksAcrossToKeysOfAnotherLength) {
  AttentionSpec spec = spec_of(2, 2, 12, 12);
  spec.causal = false;
  Problem p(spec, {}, 11);
  p.sequences = {{.first_query = 0, .queries = 9, .keys = 130, .first_key = 0},
                 {.first_query = 9, .queries = 4, .keys = 0}};
  p.tokens = 13, p.kv_tokens = 130;
  p.fill(11, 1);
  const Exact e = exact(p);
  on_every_isa([&] {
    const Attended a = attended(pool_of_two(), p);
    for (size_t i = 0; i < a.out.size(); ++i) ASSERT_NEAR(a.out[i], e.out[i], 3e-6) << i;
    EXPECT_EQ(a.out.back(), 0.0f);  // no key to see
    EXPECT_EQ(a.lse.back(), -INFINITY);
  });
}

TEST(Attention, ReadsOffsetsOfEitherWidth) {
  const std::vector<int32_t> narrow_offsets = {0, 3, 3, 10};
  const std::vector<int64_t> wide_offsets(narrow_offsets.begin(), narrow_offsets.end());
  const auto a = sequences_of(narrow_offsets.data(), 3), b = sequences_of(wide_offsets.data(), 3);
  ASSERT_EQ(a.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(a[i].first_query, narrow_offsets[i]);
    EXPECT_EQ(a[i].keys, narrow_offsets[i + 1] - narrow_offsets[i]);
    EXPECT_EQ(b[i].queries, a[i].queries);
    EXPECT_EQ(b[i].first_key, a[i].first_key);
  }
}

}  // namespace
}  // namespace easydel::kernels
