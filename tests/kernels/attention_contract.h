// Attention in the order that attention.h promises, without softcap and sinks; for numbers that are not denormals.
#pragma once

#include "kernels/attention_support.h"

namespace easydel::kernels::testing {

struct Factors {
  float left = 0, right = 0;
};

// sum + the products of the up to 32 neighbouring k that `at` gives, by the orders of accumulation_order.h.
template <class At>
float block_added(AccumulationOrder order, float sum, int64_t count, const At& at) {
  const auto k = [&](int64_t i) { return i < count ? at(i) : Factors{}; };
  const auto add = [&](float to, Factors x) {
    const float sum = std::fma(x.left, x.right, to);
    return order != AccumulationOrder::fp32_chain && std::fabs(sum) < 0x1p-126f ? 0 : sum;
  };
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

// What the kernel reads of a problem whose keys and values are plain numbers. Codes bring a class of their own with
// these names.
struct PlainRows {
  const Problem& p;
  AccumulationOrder order = AccumulationOrder::fp32_chain;

  // The query as it enters the products, and the scale that its products are multiplied by.
  float query(std::vector<float>&) const { return 1; }
  float key(int64_t row, int64_t d) const { return p.k[size_t(row * p.spec.head_dim + d)]; }
  float value(int64_t row, int64_t d) const { return p.v[size_t(row * p.spec.v_dim + d)]; }
  float scaled_score(float x, int64_t, float) const { return x; }
  float scaled_weight(float x, int64_t) const { return x; }
};

// One row of `head` for `query` of `s`.
template <class Rows>
std::vector<float> row_by_contract(const Problem& p, const Rows& rows, const AttentionSequence& s, int64_t query,
                                   int64_t head) {
  const AttentionSpec& spec = p.spec;
  const bool short_weights = rows.order != AccumulationOrder::fp32_chain;
  const int64_t kv_head = head / (spec.heads / spec.kv_heads), position = s.past + query;
  const float* const first = p.q.data() + ((s.first_query + query) * spec.heads + head) * spec.head_dim;
  std::vector<float> q(first, first + spec.head_dim);
  const float query_scale = rows.query(q);
  const float scale = spec.scale * 1.44269504f, min_rise = short_weights ? 8.0f : 0.0f;
  const auto seen = [&](int64_t t) { return t < s.keys && sees(spec, position, t); };
  const auto row = [&](int64_t t) { return (s.first_key + t) * spec.kv_heads + kv_head; };
  RowByContract all{std::vector<float>(size_t(spec.v_dim))};
  for (int64_t chunk = 0; chunk < s.keys; chunk += 512) {
    RowByContract::Chunk part(spec.v_dim);
    auto& [out, top, sums] = part;
    for (int64_t block = chunk; block < std::min(s.keys, chunk + 512); block += 64) {
      float score[64], weight[64] = {}, highest = -INFINITY;
      for (int64_t t = block; t < block + 64; ++t) {
        if (!seen(t)) continue;
        float x = 0;
        for (int64_t d = 0; d < spec.head_dim; d += 32)
          x = block_added(rows.order, x, std::min<int64_t>(32, spec.head_dim - d), [&](int64_t i) {
            return Factors{q[size_t(d + i)], rows.key(row(t), d + i)};
          });
        x = rows.scaled_score(x, row(t), query_scale) * scale;
        if (spec.slopes && spec.rounded_slopes)
          x = std::fma(key_bias(spec, head, t), scale, x);
        else if (spec.slopes)
          x = std::fma(std::fabs(float(t - position)), -(spec.slopes[head] * 1.44269504f), x);
        score[t - block] = x;
        highest = std::max(highest, x);
      }
      if (highest > top + min_rise) part.rise(highest, short_weights);
      for (int64_t t = block; t < block + 64; ++t) {
        if (!seen(t)) continue;
        const float own = power(score[t - block] - top);
        const float scaled = rows.scaled_weight(own, row(t));
        sums[t % 16] += own, weight[t - block] = short_weights ? widen(narrow(scaled)) : scaled;
      }
      for (int64_t t = block; t < block + 64; t += 32)
        for (size_t d = 0; d < out.size(); ++d)
          out[d] = block_added(rows.order, out[d], 32, [&](int64_t i) {
            return seen(t + i) ? Factors{weight[t + i - block], rows.value(row(t + i), int64_t(d))} : Factors{};
          });
    }
    all.merge(std::move(part));
  }
  return std::move(all).finished();
}

// All rows, [query, head, v_dim].
template <class Rows>
std::vector<float> rows_by_contract(const Problem& p, const Rows& rows) {
  std::vector<float> all(size_t(p.tokens * p.spec.heads * p.spec.v_dim));
  for (const AttentionSequence& s : p.sequences)
    for (int64_t i = 0; i < s.queries; ++i)
      for (int64_t h = 0; h < p.spec.heads; ++h)
        std::ranges::copy(row_by_contract(p, rows, s, i, h),
                          all.begin() + ((s.first_query + i) * p.spec.heads + h) * p.spec.v_dim);
  return all;
}

// `test(spec, size of the numbers)` for heads of several shapes, plain, in a window, with slopes in chunks, and with
// rounded slopes.
template <class Test>
void for_contract_specs(Test&& test) {
  static const std::vector<float> slopes = {0.5f, 0.1f, 0.01f, 0.7f, 0.3f, 0.2f};
  for (const AttentionSpec& spec : {spec_of(1, 1, 16, 16), spec_of(6, 2, 7, 19), spec_of(4, 4, 64, 32)})
    for (const int64_t window : {0, 50, -1, -2}) {
      AttentionSpec windowed = spec;
      windowed.window = std::max<int64_t>(window, 0);
      if (window < 0) windowed.slopes = slopes.data();
      if (window == -1) windowed.chunk = 81;
      windowed.rounded_slopes = window == -2;
      for (const float size : {1.0f, 6.0f}) test(windowed, size);
    }
}

// That the last three rows over 2,100 keys, where chunks of keys are merged, are `attended(executor)`'s.
template <class Rows, class Attend>
void expect_merged_chunks(Problem& p, const Rows& rows, const Attend& attended) {
  p.sequences[0] = {.first_query = 2097, .queries = 3, .past = 2097, .keys = 2100};
  const auto last = [&](const std::vector<float>& x) {
    return std::vector<float>(x.begin() + 2097 * p.spec.heads * p.spec.v_dim, x.end());
  };
  const std::vector<float> expected = last(rows_by_contract(p, rows));
  on_every_isa([&] {
    for (Executor* const executor : {&serial_executor(), &pool_of_two(), &pool_of_five()})
      EXPECT_TRUE(same_bits(last(attended(*executor)), expected)) << text(p.spec);
  });
}

}  // namespace easydel::kernels::testing
