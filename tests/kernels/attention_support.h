// Attention as its header describes it, and exactly, for the tests.
#pragma once

#include <algorithm>
#include <numeric>

#include "easydel/base/error.h"
#include "easydel/kernels/attention.h"
#include "kernels/support.h"

namespace easydel::kernels::testing {

inline Heads heads_of(const std::vector<float>& x, int64_t heads, int64_t dim) {
  return {x.data(), Number::f32, heads * dim, dim};
}
inline Heads heads_of(const std::vector<bf16>& x, int64_t heads, int64_t dim) {
  return {x.data(), Number::bf16, heads * dim, dim};
}
inline MutableHeads heads_of(std::vector<float>& x, int64_t heads, int64_t dim) {
  return {x.data(), Number::f32, heads * dim, dim};
}
inline MutableHeads heads_of(std::vector<bf16>& x, int64_t heads, int64_t dim) {
  return {x.data(), Number::bf16, heads * dim, dim};
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
  Heads k_heads() const { return heads_of(k, spec.kv_heads, spec.head_dim); }
  Heads v_heads() const { return heads_of(v, spec.kv_heads, spec.v_dim); }
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
          x *= double(spec.scale);
          if (spec.softcap > 0) x = double(spec.softcap) * std::tanh(x / double(spec.softcap));
          if (spec.slopes) x -= double(spec.slopes[h]) * double(std::abs(t - s.past - i));
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

}  // namespace easydel::kernels::testing
