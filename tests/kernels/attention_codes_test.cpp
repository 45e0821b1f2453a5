// Attention over keys and values that are codes: the order of attention.h, and the same bits in any company.
#include <cstring>

#include "kernels/attention_contract.h"
#include "kernels/coded_support.h"

namespace easydel::kernels {
namespace {

using namespace testing;

struct Format {
  DType codes;  // int4: of the values; keys are int8 then
  AccumulationOrder order;
  bool grouped = false;  // groups of a vector have scales of their own
};
class CodedAttention : public ::testing::TestWithParam<Format> {};

std::string text_of(const ::testing::TestParamInfo<Format>& format) {
  return name_of(format.param.codes) + (format.param.grouped ? "_groups_" : "_") +
         std::string(name(format.param.order));
}
std::vector<Format> formats() {
  std::vector<Format> all;
  for (const bool grouped : {false, true})
    for (const DType codes : {DType::i8, DType::i4, DType::e4m3})
      for (const AccumulationOrder order :
           {AccumulationOrder::fp32_chain, AccumulationOrder::bf16_pairs, AccumulationOrder::bf16_tile})
        all.push_back({codes, order, grouped});
  return all;
}
INSTANTIATE_TEST_SUITE_P(Formats, CodedAttention, ::testing::ValuesIn(formats()), text_of);

// Keys and values as codes in pages; queries in the dtype of the order. `k` and `v` become the decoded ones.
struct CodedProblem : Problem {
  DType codes = CodedAttention::GetParam().codes;
  AccumulationOrder order = CodedAttention::GetParam().order;
  bool grouped = CodedAttention::GetParam().grouped;
  std::vector<bf16> short_q;
  CodedRows coded_k, coded_v;

  CodedProblem(const AttentionSpec& s, const std::vector<int64_t>& lengths, unsigned seed, float size = 1)
      : Problem(s, lengths, seed, size) {
    make_codes();
  }
  bool in_bf16() const { return order != AccumulationOrder::fp32_chain; }
  void make_codes() {
    if (in_bf16()) short_q = narrowed(q), q = widened(short_q), k = widened(narrowed(k)), v = widened(narrowed(v));
    coded_k = encoded(k, spec.kv_heads, spec.head_dim, codes == DType::i4 ? DType::i8 : codes, serial_executor(),
                      groups_of(spec.head_dim));
    coded_v = encoded(v, spec.kv_heads, spec.v_dim, codes, serial_executor(), groups_of(spec.v_dim));
    k = coded_k.decoded(), v = coded_v.decoded();
    if (grouped && in_bf16()) k = widened(narrowed(k)), v = widened(narrowed(v));
  }
  // As few equal groups as there can be: of 1 to 64 codes, in whole vectors or not.
  int64_t groups_of(int64_t dim) const {
    if (!grouped) return 1;
    for (int64_t groups = 2; groups < dim; ++groups)
      if (dim % groups == 0) return groups;
    return dim;
  }
  Attended attended(Executor& executor) const {
    Attended a{std::vector<float>(size_t(tokens * spec.heads * spec.v_dim), 99.0f),
               std::vector<float>(size_t(tokens * spec.heads), 99.0f)};
    attend_into(executor, sequences, coded_k, coded_v, a);
    return a;
  }
  void attend_into(Executor& executor, std::span<const AttentionSequence> some, const CodedRows& own_k,
                   const CodedRows& own_v, Attended& to) const {
    attend(executor, spec, some,
           in_bf16() ? heads_of(short_q, spec.heads, spec.head_dim) : heads_of(q, spec.heads, spec.head_dim),
           own_k.all(some[0].page_tokens), own_v.all(some[0].page_tokens), heads_of(to.out, spec.heads, spec.v_dim),
           to.lse.data(), order);
  }
};

// What the kernel reads of codes: int8 makes codes of the query, too. Groups have elements of the queries' dtype.
struct CodedRowsOfContract {
  const CodedProblem& p;
  AccumulationOrder order = p.order;

  float query(std::vector<float>& q) const {
    if (!is_whole(p.codes) || p.grouped) return 1;
    float size = 0;
    for (const float x : q) size = std::max(size, std::fabs(x));
    for (float& x : q) x = std::clamp(std::nearbyint(x * (127 / size)), -127.0f, 127.0f);
    return size / 127;
  }
  float key(int64_t row, int64_t d) const { return p.grouped ? PlainRows{p}.key(row, d) : p.coded_k.code(row, d); }
  float value(int64_t row, int64_t d) const { return p.grouped ? PlainRows{p}.value(row, d) : p.coded_v.code(row, d); }
  float scaled_score(float x, int64_t row, float query_scale) const {
    if (p.grouped) return x;
    return x * p.coded_k.scales[size_t(row)] * query_scale;
  }
  // Scales can make denormals, which the orders of bf16 do not add.
  float scaled_weight(float x, int64_t row) const {
    if (p.grouped) return x;
    const float scaled = x * p.coded_v.scales[size_t(row)];
    return p.in_bf16() && scaled < 0x1p-126f ? 0 : scaled;
  }
};

TEST_P(CodedAttention, HasTheBitsOfTheContractOnEveryInstructionSet) {
  for_contract_specs([](const AttentionSpec& spec, float size) {
    const CodedProblem p(spec, {1, 63, 0, 64, 65, 530}, 3, size);
    const std::vector<float> expected = rows_by_contract(p, CodedRowsOfContract{p});
    on_every_isa([&] { EXPECT_TRUE(same_bits(p.attended(serial_executor()).out, expected)) << text(spec); });
  });
}

// Of the decoded keys and values; queries are rounded, too, where keys are whole numbers.
TEST_P(CodedAttention, IsNearTheExactOneForEverySpec) {
  for (const AttentionSpec& spec : specs()) {
    const CodedProblem p(spec, {1, 5, 0, 130, 17}, 5);
    const Exact e = exact(p);
    const Attended a = p.attended(pool_of_two());
    const double most = is_whole(p.codes) && !p.grouped ? 6e-2 : p.in_bf16() ? 2e-2 : 1e-4;
    for (size_t i = 0; i < a.out.size(); ++i) ASSERT_NEAR(a.out[i], e.out[i], most) << text(spec) << " at " << i;
  }
}

TEST_P(CodedAttention, HasTheSameBitsOnEveryInstructionSetAndTeamForEverySpec) {
  std::vector<AttentionSpec> all = specs();
  all.push_back(spec_of(6, 2, 64, 64)), all.push_back(spec_of(17, 1, 100, 96));
  for (const AttentionSpec& spec : all)
    for (const bool strange : {false, true}) {
      CodedProblem p(spec, {1, 5, 0, 130, 17}, 6, 3);
      if (strange) {
        make_hostile(p);
        p.make_codes();
      }
      expect_the_same_everywhere(p, text(spec) + (strange ? ", strange" : ""));
    }
}

TEST_P(CodedAttention, DecodesFromPagesOfAnySizeWithTheBitsOfTheWholePrompt) {
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
    const CodedProblem p(spec, {length}, 12, 2);
    const Attended whole = p.attended(pool_of_two());
    std::vector<int32_t> pages(size_t(divide_up(length, c.page)));
    std::iota(pages.rbegin(), pages.rend(), 0);
    const CodedRows k = p.coded_k.in_pages(pages, c.page), v = p.coded_v.in_pages(pages, c.page);
    on_every_isa([&] {
      for (const int64_t last : {0, 63, 64, 511, 512, 599})
        for (const int64_t queries : {1, 3, 40}) {
          if (last < queries) continue;
          const int64_t first = last + 1 - queries, row = c.heads * c.v_dim;
          AttentionSequence s{.first_query = first, .queries = queries, .past = first, .keys = last + 1};
          s.pages = pages.data(), s.page_tokens = c.page;
          const auto rows_of = [&](const Attended& a) {
            return std::vector<float>(a.out.begin() + first * row, a.out.begin() + (last + 1) * row);
          };
          Attended a = whole;
          std::ranges::fill(a.out, 0.0f);
          p.attend_into(pool_of_five(), {&s, 1}, k, v, a);
          EXPECT_TRUE(same_bits(rows_of(a), rows_of(whole))) << text(spec) << " in pages at " << last;
        }
    });
  }
}

// A token with a NaN spoils the rows that see it, and no other row.
TEST_P(CodedAttention, NeverMultipliesWhatARowCannotSee) {
  for (const int64_t window : {0, 7, 70}) {
    AttentionSpec spec = spec_of(window == 7 ? 3 : 13, 1, 32, 32);
    spec.window = window;
    const CodedProblem clean(spec, {200}, 8);
    const Attended expected = clean.attended(serial_executor());
    const int64_t row = spec.heads * 32;
    for (const int64_t strange : {10, 64, 127, 150})
      for (const bool in_values : {false, true}) {
        CodedProblem with = clean;
        CodedRows& rows = in_values ? with.coded_v : with.coded_k;
        rows.scales[size_t(strange * rows.groups)] = NAN;
        on_every_isa([&] {
          const Attended a = with.attended(serial_executor());
          for (int64_t t = 0; t < 200; ++t) {
            const size_t from = size_t(t * row);
            if (sees(spec, t, strange))
              EXPECT_TRUE(std::isnan(a.out[from])) << t << " with " << strange;
            else
              EXPECT_EQ(std::memcmp(&a.out[from], &expected.out[from], size_t(row) * sizeof(float)), 0)
                  << t << " without " << strange;
          }
        });
      }
  }
}

TEST_P(CodedAttention, NeedsScalesAndCodesOfOneType) {
  const CodedProblem p(spec_of(1, 1, 16, 16), {4}, 1);
  std::vector<float> out(4 * 16);
  Heads k = p.coded_k.all(0), v = p.coded_v.all(0);
  const auto attends = [&] {
    attend(serial_executor(), p.spec, p.sequences, heads_of(p.q, 1, 16), k, v, heads_of(out, 1, 16), nullptr);
  };
  const Heads own_k = k, own_v = v;
  v.dtype = k.dtype == DType::i8 ? DType::e4m3 : DType::i8;
  EXPECT_THROW(attends(), Bug);
  v = own_v, k.dtype = DType::i4;  // keys are never int4
  EXPECT_THROW(attends(), Bug);
  k = own_k, k.scales = {};
  EXPECT_THROW(attends(), Bug);
  k = own_k, k.scales.groups = 3;
  EXPECT_THROW(attends(), Bug);
}

// The sums of int8 keys would no longer be exact.
TEST(CodedAttentionKeys, OfMoreThan1024DimensionsNeedGroups) {
  const std::vector<float> keys(2 * 1040, 1.0f);
  std::vector<float> out(2 * 16);
  const AttentionSpec spec = spec_of(1, 1, 1040, 16);
  const AttentionSequence all{.queries = 2, .keys = 2};
  const CodedRows v = encoded(std::vector<float>(2 * 16, 3.0f), 1, 16, DType::i8);
  const auto attends = [&](const CodedRows& k) {
    attend(serial_executor(), spec, {&all, 1}, heads_of(keys, 1, 1040), k.all(0), v.all(0), heads_of(out, 1, 16),
           nullptr);
  };
  EXPECT_THROW(attends(encoded(keys, 1, 1040, DType::i8)), Bug);
  attends(encoded(keys, 1, 1040, DType::i8, serial_executor(), 2));
  for (const float x : out) EXPECT_FLOAT_EQ(x, 3.0f);
}

TEST(CodedAttentionOrder, IsThatOfTheQueries) {
  for (const DType codes : {DType::i8, DType::e4m3}) {
    EXPECT_EQ(attention_order(DType::bf16, codes, codes), bf16_order());
    EXPECT_EQ(attention_order(DType::f32, codes, codes), AccumulationOrder::fp32_chain);
  }
  EXPECT_EQ(attention_order(DType::bf16, DType::i8, DType::i4), bf16_order());
}

}  // namespace
}  // namespace easydel::kernels
