// Gradients of attention as its header describes them, and exactly, for the tests.
#pragma once

#include "kernels/attention_support.h"

namespace easydel::kernels::testing {

template <class T>
std::vector<T> as(const std::vector<float>& x) {
  if constexpr (std::is_same_v<T, bf16>)
    return narrowed(x);
  else
    return x;
}

struct Gradients {
  std::vector<float> dq, dk, dv, dsinks;
};

// From q, k, v and dout as T holds them.
template <class T = float>
Gradients gradients(Executor& executor, const Problem& p, const std::vector<float>& dout) {
  const AttentionSpec& s = p.spec;
  const Attended forward = attended(executor, p);
  const std::vector<T> q = as<T>(p.q), k = as<T>(p.k), v = as<T>(p.v), back = as<T>(dout);
  Gradients g{std::vector<float>(p.q.size(), 9.0f), std::vector<float>(p.k.size(), 9.0f),
              std::vector<float>(p.v.size(), 9.0f), std::vector<float>(size_t(s.heads), 0.0f)};
  attend_backward(executor, s, p.sequences,
                  {.q = heads_of(q, s.heads, s.head_dim),
                   .k = heads_of(k, s.kv_heads, s.head_dim),
                   .v = heads_of(v, s.kv_heads, s.v_dim),
                   .out = heads_of(forward.out, s.heads, s.v_dim),
                   .dout = heads_of(back, s.heads, s.v_dim),
                   .lse = forward.lse.data(),
                   .dq = heads_of(g.dq, s.heads, s.head_dim),
                   .dk = heads_of(g.dk, s.kv_heads, s.head_dim),
                   .dv = heads_of(g.dv, s.kv_heads, s.v_dim),
                   .dsinks = g.dsinks.data()});
  return g;
}

// In double precision, by the chain rule over the whole matrix of weights.
struct ExactGradients {
  std::vector<double> dq, dk, dv, dsinks;
};
inline ExactGradients exact_gradients(const Problem& p, const std::vector<float>& dout) {
  const AttentionSpec& spec = p.spec;
  const int64_t group = spec.heads / spec.kv_heads, dim = spec.head_dim, v_dim = spec.v_dim;
  const Exact forward = exact(p);
  ExactGradients g{std::vector<double>(p.q.size()), std::vector<double>(p.k.size()), std::vector<double>(p.v.size()),
                   std::vector<double>(size_t(spec.heads))};
  for (const AttentionSequence& s : p.sequences)
    for (int64_t i = 0; i < s.queries; ++i)
      for (int64_t h = 0; h < spec.heads; ++h) {
        const int64_t row = (s.first_query + i) * spec.heads + h;
        double dot = 0;
        for (int64_t d = 0; d < v_dim; ++d)
          dot += forward.out[size_t(row * v_dim + d)] * double(dout[size_t(row * v_dim + d)]);
        if (spec.sinks) g.dsinks[size_t(h)] -= std::exp(double(spec.sinks[h]) - forward.lse[size_t(row)]) * dot;
        for (int64_t t = 0; t < s.keys; ++t) {
          if (!sees(spec, s.past + i, t)) continue;
          const int64_t key = (s.first_key + t) * spec.kv_heads + h / group;
          double x = 0, dweight = 0, slope = 1;
          for (int64_t d = 0; d < dim; ++d)
            x += double(p.q[size_t(row * dim + d)]) * double(p.k[size_t(key * dim + d)]);
          x = (x + double(key_bias(spec, h, t))) * double(spec.scale);
          if (spec.softcap > 0) {
            const double tanh = std::tanh(x / double(spec.softcap));
            x = double(spec.softcap) * tanh, slope = 1 - tanh * tanh;
          }
          if (spec.slopes && !spec.rounded_slopes) x -= double(spec.slopes[h]) * double(std::abs(t - s.past - i));
          const double weight = std::exp(x - forward.lse[size_t(row)]);
          for (int64_t d = 0; d < v_dim; ++d) {
            dweight += double(dout[size_t(row * v_dim + d)]) * double(p.v[size_t(key * v_dim + d)]);
            g.dv[size_t(key * v_dim + d)] += weight * double(dout[size_t(row * v_dim + d)]);
          }
          const double dx = weight * (dweight - dot) * slope * double(spec.scale);
          for (int64_t d = 0; d < dim; ++d) {
            g.dq[size_t(row * dim + d)] += dx * double(p.k[size_t(key * dim + d)]);
            g.dk[size_t(key * dim + d)] += dx * double(p.q[size_t(row * dim + d)]);
          }
        }
      }
  return g;
}

// Every feature, with one head and with odd dims and groups.
inline std::vector<AttentionSpec> gradient_specs() {
  static const std::vector<float> sinks = {0.5f, -1, 2, 0, 1, -2}, slopes = {0.5f, 0.1f, 0.01f, 0.7f, 0.3f, 0.2f};
  std::vector<AttentionSpec> all;
  for (AttentionSpec s : {AttentionSpec{.heads = 1, .kv_heads = 1, .head_dim = 16, .v_dim = 16},
                          AttentionSpec{.heads = 6, .kv_heads = 2, .head_dim = 7, .v_dim = 37}}) {
    s.scale = 1 / std::sqrt(float(s.head_dim));
    all.push_back(s);
    all.push_back(s), all.back().window = 40;
    all.push_back(s), all.back().causal = false;
    all.push_back(s), all.back().causal = false, all.back().window = 90;
    all.push_back(s), all.back().softcap = 1.5f;
    all.push_back(s), all.back().sinks = sinks.data(), all.back().softcap = 4, all.back().window = 3;
    for (const int64_t chunk : {3, 30, 128}) all.push_back(s), all.back().chunk = chunk;
    all.push_back(s), all.back().chunk = 60, all.back().causal = false;
    all.push_back(s), all.back().chunk = 60, all.back().window = 25;
    all.push_back(s), all.back().slopes = slopes.data(), all.back().softcap = 2;
    all.push_back(s), all.back().slopes = slopes.data(), all.back().causal = false;
    all.push_back(s), all.back().slopes = slopes.data(), all.back().rounded_slopes = true;
  }
  return all;
}

}  // namespace easydel::kernels::testing
