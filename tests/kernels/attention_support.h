// Attention as its header describes it, and exactly, for the tests.
#pragma once

#include <algorithm>
#include <numeric>

#include "easydel/base/error.h"
#include "easydel/kernels/attention.h"
#include "kernels/support.h"

namespace easydel::kernels::testing {

// page_tokens: of sequences with pages.
inline Heads heads_of(const std::vector<float>& x, int64_t heads, int64_t dim, int64_t page_tokens = 0) {
  return {x.data(), DType::f32, heads * dim, dim, page_tokens * heads * dim};
}
inline Heads heads_of(const std::vector<bf16>& x, int64_t heads, int64_t dim, int64_t page_tokens = 0) {
  return {x.data(), DType::bf16, heads * dim, dim, page_tokens * heads * dim};
}
inline MutableHeads heads_of(std::vector<float>& x, int64_t heads, int64_t dim) {
  return {x.data(), DType::f32, heads * dim, dim};
}
inline MutableHeads heads_of(std::vector<bf16>& x, int64_t heads, int64_t dim) {
  return {x.data(), DType::bf16, heads * dim, dim};
}

struct Problem {
  AttentionSpec spec;
  std::vector<AttentionSequence> sequences;
  std::vector<float> q, k, v;
  int64_t tokens = 0, kv_tokens = 0;

  // Sequences of these lengths, keys as many as queries.
  Problem(const AttentionSpec& s, const std::vector<int64_t>& lengths, unsigned seed = 1, float size = 1) : spec(s) {
    for (const int64_t n : lengths) {
      sequences.push_back({.first_query = tokens, .queries = n, .keys = n, .first_key = tokens});
      tokens += n;
    }
    kv_tokens = tokens;
    fill(seed, size);
  }
  void fill(unsigned seed, float size) {
    q = normal(tokens * spec.heads * spec.head_dim, seed, size);
    k = normal(kv_tokens * spec.kv_heads * spec.head_dim, seed + 1, size);
    v = normal(kv_tokens * spec.kv_heads * spec.v_dim, seed + 2);
  }
  Heads q_heads() const { return heads_of(q, spec.heads, spec.head_dim); }
  Heads k_heads() const { return heads_of(k, spec.kv_heads, spec.head_dim, page_tokens()); }
  Heads v_heads() const { return heads_of(v, spec.kv_heads, spec.v_dim, page_tokens()); }
  int64_t page_tokens() const { return sequences.empty() ? 0 : sequences[0].page_tokens; }
};

struct Attended {
  std::vector<float> out, lse;
};

inline Attended attended(Executor& executor, const Problem& p) {
  Attended a{std::vector<float>(size_t(p.tokens * p.spec.heads * p.spec.v_dim), 99.0f),
             std::vector<float>(size_t(p.tokens * p.spec.heads), 99.0f)};
  attend(executor, p.spec, p.sequences, p.q_heads(), p.k_heads(), p.v_heads(),
         heads_of(a.out, p.spec.heads, p.spec.v_dim), a.lse.data());
  return a;
}

// What rounded slopes add to the product of a query with key t; without them 0.
inline float key_bias(const AttentionSpec& spec, int64_t head, int64_t t) {
  const auto rounded = [](float x) { return widen(narrow(x)); };
  return spec.slopes && spec.rounded_slopes ? rounded(rounded(spec.slopes[head]) * rounded(float(t))) : 0;
}

inline bool sees(const AttentionSpec& spec, int64_t position, int64_t key) {
  if (spec.causal && key > position) return false;
  if (spec.chunk > 0 && key / spec.chunk != position / spec.chunk) return false;
  return spec.window <= 0 || (key > position - spec.window && key < position + spec.window);
}

// In double precision, by the definition.
struct Exact {
  std::vector<double> out, lse;
};
inline Exact exact(const Problem& p) {
  const AttentionSpec& spec = p.spec;
  const int64_t group = spec.heads / spec.kv_heads;
  Exact e{std::vector<double>(size_t(p.tokens * spec.heads * spec.v_dim)),
          std::vector<double>(size_t(p.tokens * spec.heads))};
  for (const AttentionSequence& s : p.sequences)
    for (int64_t i = 0; i < s.queries; ++i)
      for (int64_t h = 0; h < spec.heads; ++h) {
        const int64_t row = (s.first_query + i) * spec.heads + h;
        std::vector<double> score(size_t(s.keys), -INFINITY);
        double top = spec.sinks ? double(spec.sinks[h]) : -INFINITY;
        for (int64_t t = 0; t < s.keys; ++t) {
          if (!sees(spec, s.past + i, t)) continue;
          double x = 0;
          for (int64_t d = 0; d < spec.head_dim; ++d)
            x += double(p.q[size_t(row * spec.head_dim + d)]) *
                 double(p.k[size_t(((s.first_key + t) * spec.kv_heads + h / group) * spec.head_dim + d)]);
          x = (x + double(key_bias(spec, h, t))) * double(spec.scale);
          if (spec.softcap > 0) x = double(spec.softcap) * std::tanh(x / double(spec.softcap));
          if (spec.slopes && !spec.rounded_slopes) x -= double(spec.slopes[h]) * double(std::abs(t - s.past - i));
          score[size_t(t)] = x, top = std::max(top, x);
        }
        double sum = spec.sinks ? std::exp(double(spec.sinks[h]) - top) : 0;
        for (int64_t t = 0; t < s.keys; ++t) {
          if (!sees(spec, s.past + i, t)) continue;
          const double weight = std::exp(score[size_t(t)] - top);
          sum += weight;
          for (int64_t d = 0; d < spec.v_dim; ++d)
            e.out[size_t(row * spec.v_dim + d)] +=
                weight * double(p.v[size_t(((s.first_key + t) * spec.kv_heads + h / group) * spec.v_dim + d)]);
        }
        e.lse[size_t(row)] = sum == 0 ? -INFINITY : top + std::log(sum);
        for (int64_t d = 0; d < spec.v_dim; ++d)
          if (sum != 0) e.out[size_t(row * spec.v_dim + d)] /= sum;
      }
  return e;
}

// 2^x for x <= 0 in the steps of wide.h.
inline float power(float x) {
  if (x < -126) return 0;
  const float whole = std::nearbyint(x), f = x - whole;
  float y = 0.00015353360504377633f;
  for (const float c : {0.0013398875016719103f, 0.00961843691766262f, 0.055503323674201965f, 0.24022647738456726f,
                        0.6931471824645996f, 1.0f})
    y = std::fma(y, f, c);
  return std::ldexp(y, int(whole));
}

// A row over chunks of keys by the order of attention.h.
struct RowByContract {
  struct Chunk {
    std::vector<float> out;
    float top = -INFINITY, sums[16] = {};

    explicit Chunk(int64_t v_dim) : out(size_t(v_dim)) {}
    // `flushes`: denormals become 0.
    void rise(float highest, bool flushes = false) {
      const float shrink = power(top - highest);
      const auto shrunk = [&](float x) { return flushes && std::fabs(x * shrink) < 0x1p-126f ? 0 : x * shrink; };
      for (float& x : sums) x = shrunk(x);
      for (float& x : out) x = shrunk(x);
      top = highest;
    }
  };
  std::vector<float> out;
  float top = -INFINITY, sum = 0;

  // `chunk` follows the earlier ones.
  void merge(Chunk chunk) {
    for (int half = 8; half > 0; half /= 2)
      for (int i = 0; i < half; ++i) chunk.sums[i] += chunk.sums[i + half];
    if (chunk.sums[0] == 0) return;
    if (sum == 0) {
      out = std::move(chunk.out), top = chunk.top, sum = chunk.sums[0];
      return;
    }
    const float now = std::max(top, chunk.top), a = power(top - now), b = power(chunk.top - now);
    sum = std::fma(chunk.sums[0], b, sum * a), top = now;
    for (size_t d = 0; d < out.size(); ++d) out[d] = std::fma(chunk.out[d], b, out[d] * a);
  }
  std::vector<float> finished() && {
    for (float& x : out) x *= sum == 0 ? 0 : 1 / sum;
    return std::move(out);
  }
};

// Queries over keys of another length, some of which no sequence has.
inline Problem with_keys_of_another_length() {
  Problem p({.heads = 2, .kv_heads = 1, .head_dim = 8, .v_dim = 12, .scale = 0.3f, .causal = false}, {});
  p.sequences = {{.first_query = 0, .queries = 9, .keys = 100, .first_key = 3},
                 {.first_query = 9, .queries = 2, .keys = 0}};
  p.tokens = 11, p.kv_tokens = 103;
  p.fill(25, 1);
  return p;
}

inline AttentionSpec spec_of(int64_t heads, int64_t kv_heads, int64_t dim, int64_t v_dim) {
  return {.heads = heads, .kv_heads = kv_heads, .head_dim = dim, .v_dim = v_dim, .scale = 1 / std::sqrt(float(dim))};
}

inline std::vector<AttentionSpec> specs() {
  static const std::vector<float> sinks = {0.5f, -1, 3, 0}, slopes = {0.25f, 0.0625f, 0.5f, 0.7f};
  std::vector<AttentionSpec> all;
  for (const AttentionSpec& base : {spec_of(1, 1, 16, 16), spec_of(4, 2, 7, 19), spec_of(4, 1, 40, 33)}) {
    all.push_back(base);
    for (const int64_t window : {1, 5, 70}) all.push_back(base), all.back().window = window;
    all.push_back(base), all.back().causal = false;
    all.push_back(base), all.back().causal = false, all.back().window = 30;
    all.push_back(base), all.back().softcap = 2;
    all.push_back(base), all.back().sinks = sinks.data();
    all.push_back(base), all.back().sinks = sinks.data(), all.back().softcap = 5, all.back().window = 9;
    for (const int64_t chunk : {1, 7, 64, 100}) all.push_back(base), all.back().chunk = chunk;
    all.push_back(base), all.back().chunk = 50, all.back().window = 20;
    all.push_back(base), all.back().chunk = 50, all.back().causal = false;
    all.push_back(base), all.back().slopes = slopes.data();
    all.push_back(base), all.back().slopes = slopes.data(), all.back().causal = false;
    all.push_back(base), all.back().slopes = slopes.data(), all.back().rounded_slopes = true;
    all.push_back(base), all.back().slopes = slopes.data(), all.back().softcap = 3, all.back().sinks = sinks.data();
  }
  return all;
}

inline std::string text(const AttentionSpec& s) {
  return str(s.heads, "/", s.kv_heads, " heads of ", s.head_dim, " and ", s.v_dim, s.causal ? ", causal" : "",
             ", window ", s.window, ", chunk ", s.chunk, ", softcap ", s.softcap, s.sinks ? ", sinks" : "",
             s.slopes ? s.rounded_slopes ? ", rounded slopes" : ", slopes" : "");
}

// Denormals, huge numbers, infinities and NaN among queries, keys and values.
inline void make_hostile(Problem& p) {
  p.q = hostile(int64_t(p.q.size()), 1), p.k = hostile(int64_t(p.k.size()), 2);
  p.v = hostile(int64_t(p.v.size()), 3);
  p.v[p.v.size() / 3] = INFINITY, p.v[p.v.size() / 2] = NAN, p.k[p.k.size() / 2] = -INFINITY;
}

// The same bits on every instruction set and number of threads.
template <class AnyProblem>
void expect_the_same_everywhere(const AnyProblem& p, const std::string& what) {
  const auto first = p.attended(serial_executor());
  on_every_isa([&] {
    for (Executor* const executor : {&serial_executor(), &pool_of_two(), &pool_of_five()}) {
      const auto again = p.attended(*executor);
      EXPECT_TRUE(same_bits(again.out, first.out)) << what;
      EXPECT_TRUE(same_bits(again.lse, first.lse)) << what;
    }
  });
}

}  // namespace easydel::kernels::testing
