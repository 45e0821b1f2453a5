// Attention over keys and values that are codes: the order of attention.h, and the same bits in any company.
#include <cstring>

#include "kernels/attention_support.h"
#include "kernels/coded_support.h"

namespace easydel::kernels {
namespace {

using namespace testing;

struct Format {
  DType codes;
  AccumulationOrder order;
};
class CodedAttention : public ::testing::TestWithParam<Format> {};

std::string text_of(const ::testing::TestParamInfo<Format>& format) {
  return (format.param.codes == DType::i8 ? "int8_" : "e4m3_") + std::string(name(format.param.order));
}
INSTANTIATE_TEST_SUITE_P(Formats, CodedAttention,
                         ::testing::Values(Format{DType::i8, AccumulationOrder::fp32_chain},
                                           Format{DType::i8, AccumulationOrder::bf16_pairs},
                                           Format{DType::i8, AccumulationOrder::bf16_tile},
                                           Format{DType::e4m3, AccumulationOrder::fp32_chain},
                                           Format{DType::e4m3, AccumulationOrder::bf16_pairs},
                                           Format{DType::e4m3, AccumulationOrder::bf16_tile}),
                         text_of);

// Keys and values as codes in pages; queries in the dtype of the order. `k` and `v` become the decoded ones.
struct CodedProblem : Problem {
  DType codes = CodedAttention::GetParam().codes;
  AccumulationOrder order = CodedAttention::GetParam().order;
  std::vector<bf16> short_q;
  CodedRows coded_k, coded_v;

  CodedProblem(const AttentionSpec& s, const std::vector<int64_t>& lengths, unsigned seed, float size = 1)
      : Problem(s, lengths, seed, size) {
    make_codes();
  }
  bool in_bf16() const { return order != AccumulationOrder::fp32_chain; }
  void make_codes() {
    if (in_bf16()) short_q = narrowed(q), q = widened(short_q), k = widened(narrowed(k)), v = widened(narrowed(v));
    coded_k = encoded(k, spec.kv_heads, spec.head_dim, codes);
    coded_v = encoded(v, spec.kv_heads, spec.v_dim, codes);
    k = coded_k.decoded(), v = coded_v.decoded();
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

// sum + the products of up to 32 neighbouring k by the orders of accumulation_order.h.
struct Factors {
  float left = 0, right = 0;
};
template <class At>
float block_added(AccumulationOrder order, float sum, int64_t count, const At& at) {
  const auto k = [&](int64_t i) { return i < count ? at(i) : Factors{}; };
  const auto add = [](float to, Factors x) { return std::fma(x.left, x.right, to); };
  if (order == AccumulationOrder::fp32_chain) {
    for (int64_t i = 0; i < count; ++i) sum = add(sum, k(i));
    return sum;
  }
  if (order == AccumulationOrder::bf16_pairs) {
    for (int64_t i = 0; i < count; i += 2) sum = add(add(sum, k(i + 1)), k(i));
    return sum;
  }
  float even = 0, odd = 0;
  for (int64_t i = 0; i < count; i += 2) even = add(even, k(i)), odd = add(odd, k(i + 1));
  return sum + (even + odd);
}

// One row in the order of attention.h, without softcap and sinks; for numbers that are not denormals.
std::vector<float> row_by_contract(const CodedProblem& p, const AttentionSequence& s, int64_t query, int64_t head) {
  const AttentionSpec& spec = p.spec;
  const int64_t kv_head = head / (spec.heads / spec.kv_heads), position = s.past + query;
  const float* q = p.q.data() + ((s.first_query + query) * spec.heads + head) * spec.head_dim;
  std::vector<float> whole(q, q + spec.head_dim);
  float query_scale = 1;
  if (p.codes == DType::i8) {
    float size = 0;
    for (const float x : whole) size = std::max(size, std::fabs(x));
    query_scale = size / 127;
    for (float& x : whole) x = std::clamp(std::nearbyint(x * (127 / size)), -127.0f, 127.0f);
  }
  const float scale = spec.scale * 1.44269504f, least_rise = p.in_bf16() ? 8.0f : 0.0f;
  RowByContract all{std::vector<float>(size_t(spec.v_dim))};
  for (int64_t chunk = 0; chunk < s.keys; chunk += 512) {
    RowByContract::Chunk part(spec.v_dim);
    auto& [out, top, sums] = part;
    for (int64_t block = chunk; block < std::min(s.keys, chunk + 512); block += 64) {
      float score[64], weight[64] = {}, highest = -INFINITY;
      const auto seen = [&](int64_t t) { return t < s.keys && sees(spec, position, t); };
      const auto row = [&](int64_t t) { return (s.first_key + t) * spec.kv_heads + kv_head; };
      for (int64_t t = block; t < block + 64; ++t) {
        if (!seen(t)) continue;
        float x = 0;
        for (int64_t d = 0; d < spec.head_dim; d += 32)
          x = block_added(p.order, x, std::min<int64_t>(32, spec.head_dim - d), [&](int64_t i) {
            return Factors{whole[size_t(d + i)], p.coded_k.code(row(t), d + i)};
          });
        x = x * p.coded_k.scales[size_t(row(t))] * query_scale * scale;
        if (spec.slopes) x = std::fma(std::fabs(float(t - position)), -(spec.slopes[head] * 1.44269504f), x);
        score[t - block] = x;
        highest = std::max(highest, x);
      }
      if (highest > top + least_rise) part.rise(highest);
      for (int64_t t = block; t < block + 64; ++t) {
        if (!seen(t)) continue;
        const float own = power(score[t - block] - top);
        float scaled = own * p.coded_v.scales[size_t(row(t))];
        if (p.in_bf16() && scaled < 0x1p-126f) scaled = 0;
        sums[t % 16] += own, weight[t - block] = p.in_bf16() ? widen(narrow(scaled)) : scaled;
      }
      for (int64_t t = block; t < block + 64; t += 32)
        for (size_t d = 0; d < out.size(); ++d)
          out[d] = block_added(p.order, out[d], 32, [&](int64_t i) {
            return seen(t + i) ? Factors{weight[t + i - block], p.coded_v.code(row(t + i), int64_t(d))} : Factors{};
          });
    }
    all.merge(std::move(part));
  }
  return std::move(all).finished();
}

TEST_P(CodedAttention, HasTheBitsOfTheContractOnEveryInstructionSet) {
  static const std::vector<float> slopes = {0.5f, 0.1f, 0.01f, 0.7f, 0.3f, 0.2f};
  for (const AttentionSpec& spec : {spec_of(1, 1, 16, 16), spec_of(6, 2, 7, 19), spec_of(4, 4, 64, 32)})
    for (const int64_t window : {0, 50, -1}) {
      AttentionSpec windowed = spec;
      windowed.window = std::max<int64_t>(window, 0);
      if (window < 0) windowed.slopes = slopes.data(), windowed.chunk = 81;
      for (const float size : {1.0f, 6.0f}) {
        const CodedProblem p(windowed, {1, 63, 0, 64, 65, 530}, 3, size);
        std::vector<float> expected(size_t(p.tokens * spec.heads * spec.v_dim));
        for (const AttentionSequence& s : p.sequences)
          for (int64_t i = 0; i < s.queries; ++i)
            for (int64_t h = 0; h < spec.heads; ++h)
              std::ranges::copy(row_by_contract(p, s, i, h),
                                expected.begin() + ((s.first_query + i) * spec.heads + h) * spec.v_dim);
        on_every_isa([&] { EXPECT_TRUE(same_bits(p.attended(serial_executor()).out, expected)) << text(windowed); });
      }
    }
}

// Of the decoded keys and values; int8 rounds queries, too.
TEST_P(CodedAttention, IsNearTheExactOneForEverySpec) {
  for (const AttentionSpec& spec : specs()) {
    const CodedProblem p(spec, {1, 5, 0, 130, 17}, 5);
    const Exact e = exact(p);
    const Attended a = p.attended(pool_of_two());
    const double most = p.codes == DType::i8 ? 6e-2 : p.in_bf16() ? 2e-2 : 1e-4;
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
        p.q = hostile(int64_t(p.q.size()), 1), p.k = hostile(int64_t(p.k.size()), 2);
        p.v = hostile(int64_t(p.v.size()), 3);
        p.v[p.v.size() / 3] = INFINITY, p.v[p.v.size() / 2] = NAN, p.k[p.k.size() / 2] = -INFINITY;
        p.make_codes();
      }
      const Attended first = p.attended(serial_executor());
      on_every_isa([&] {
        for (Executor* const executor : {&serial_executor(), &pool_of_two(), &pool_of_five()}) {
          const Attended again = p.attended(*executor);
          EXPECT_TRUE(same_bits(again.out, first.out)) << text(spec) << (strange ? ", strange" : "");
          EXPECT_TRUE(same_bits(again.lse, first.lse)) << text(spec) << (strange ? ", strange" : "");
        }
      });
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
        (in_values ? with.coded_v : with.coded_k).scales[size_t(strange)] = NAN;
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
  v.dtype = p.codes == DType::i8 ? DType::e4m3 : DType::i8;
  EXPECT_THROW(attends(), Bug);
  v.dtype = k.dtype, k.scales = {};
  EXPECT_THROW(attends(), Bug);
}

TEST(CodedAttentionOrder, IsThatOfTheQueries) {
  for (const DType codes : {DType::i8, DType::e4m3}) {
    EXPECT_EQ(attention_order(DType::bf16, codes, codes), bf16_order());
    EXPECT_EQ(attention_order(DType::f32, codes, codes), AccumulationOrder::fp32_chain);
  }
}

}  // namespace
}  // namespace easydel::kernels
