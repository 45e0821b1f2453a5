// One token's step of a recurrence and of its backward, for a vector type V. Included by loops_<set>.cpp only.
#pragma once

#include "easydel/kernels/memory.h"
#include "easydel/kernels/recurrence_step.h"
#include "easydel/kernels/wide.h"

namespace easydel::kernels {

template <class V>
struct RecurrenceLoops {
  using W = Wide<V>;
  using Math = WideMath<V>;

  static float exp(float x) {
    float all[lanes];
    Math::exp(W::set(x)).store(all);
    return all[0];
  }

  // The factors of a token's decay: one for each row of the state, the same for its columns; or, by values, one for
  // each element, computed when it is needed.
  static void row_factors(const RecurrenceStep& s, int64_t t, float* factors) {
    const int64_t rows = s.spec.k_dim;
    if (s.spec.decay == Decay::keys) {
      const float* const rate = s.in.rate + s.at_keys(t);
      for (int64_t i = 0; i < rows; i += lanes) Math::exp(W::load(rate + i, rows - i)).store(factors + i);
      return;
    }
    const float factor = s.spec.decay == Decay::scalar ? exp(s.in.rate[s.at_head(t)]) : 1.0f;
    for (int64_t i = 0; i < rows; ++i) factors[i] = factor;
  }

  static W slopes_at(const RecurrenceStep& s, int64_t i, int64_t j) {
    if (!s.in.slopes) return W::set(1);
    return W::load(s.in.slopes + (s.head * s.spec.k_dim + i) * s.spec.v_dim + j, s.spec.v_dim - j);
  }
  // With one rate per column, the factor is the same in every row.
  template <bool by_values>
  static W factor_at(const RecurrenceStep& s, const float* factors, W rate, int64_t i, int64_t j) {
    if constexpr (!by_values) return W::set(factors[i]);
    return Math::exp(s.in.slopes ? rate * slopes_at(s, i, j) : rate);
  }

  // Columns [j, j + 16 count) of one token; o may be null.
  template <int count, bool by_values>
  static void columns(const RecurrenceStep& s, int64_t t, const float* factors, int64_t j, float* state, float* o,
                      float* kept) {
    const int64_t rows = s.spec.k_dim, n = s.spec.v_dim, stride = s.columns;
    const float *const k = s.k(t), *const q = s.q(t), *const v = s.v(t);
    W rate[count], u[count], read[count];
    for (int c = 0; c < count; ++c) {
      const int64_t at = j + c * lanes;
      rate[c] = by_values ? W::load(s.in.rate + s.at_values(t) + at, n - at) : W::zero();
      u[c] = W::load(v + at, n - at);
      read[c] = W::zero();
    }
    if (s.spec.read_before && o)
      for (int64_t i = 0; i < rows; ++i)
        for (int c = 0; c < count; ++c)
          read[c] = Math::fma(W::load(state + i * stride + j + c * lanes), W::set(q[i]), read[c]);
    if (s.spec.delta) {
      W found[count];
      for (int c = 0; c < count; ++c) found[c] = W::zero();
      for (int64_t i = 0; i < rows; ++i) {
        const W key = W::set(k[i]);
        for (int c = 0; c < count; ++c) {
          float* const at = state + i * stride + j + c * lanes;
          const W decayed = W::load(at) * factor_at<by_values>(s, factors, rate[c], i, j + c * lanes);
          decayed.store(at);
          found[c] = Math::fma(decayed, key, found[c]);
        }
      }
      for (int c = 0; c < count; ++c) u[c] = u[c] - found[c];
    }
    if (kept)
      for (int c = 0; c < count; ++c) u[c].store(kept + j + c * lanes);
    if (s.spec.delta)
      for (int c = 0; c < count; ++c) u[c] = u[c] * W::set(s.in.beta[s.at_head(t)]);
    const bool decays = !s.spec.delta && s.spec.decay != Decay::none, reads = !s.spec.read_before && o;
    for (int64_t i = 0; i < rows; ++i) {
      const W key = W::set(k[i]), query = W::set(q[i]);
      for (int c = 0; c < count; ++c) {
        float* const at = state + i * stride + j + c * lanes;
        W now = W::load(at);
        if (decays) now = now * factor_at<by_values>(s, factors, rate[c], i, j + c * lanes);
        now = Math::fma(u[c], key, now);
        now.store(at);
        if (reads) read[c] = Math::fma(now, query, read[c]);
      }
    }
    if (!o) return;
    for (int c = 0; c < count; ++c) read[c].store(o + s.at_values(t) + j + c * lanes, n - j - c * lanes);
  }

  template <bool by_values>
  static void token(const RecurrenceStep& s, int64_t t, const float* factors, float* state, float* o, float* kept) {
    int64_t j = 0;
    for (; j + 4 * lanes <= s.columns; j += 4 * lanes) columns<4, by_values>(s, t, factors, j, state, o, kept);
    for (; j < s.columns; j += lanes) columns<1, by_values>(s, t, factors, j, state, o, kept);
  }

  // Processes tokens [begin, end). `state` [k_dim, columns] is updated in place. o may be null. `before` (may be null)
  // gets the state before each token, `kept` [tokens, columns] the values it wrote, without beta.
  static void recur(const RecurrenceStep& s, int64_t begin, int64_t end, float* state, float* o, float* before,
                    float* kept) {
    thread_local Scratch<float> scratch;
    float* const factors = scratch.at_least(s.spec.k_dim + lanes);
    const int64_t size = s.spec.k_dim * s.columns;
    for (int64_t t = begin; t < end; ++t) {
      if (before) std::memcpy(before + (t - begin) * size, state, size_t(size) * sizeof(float));
      float* const u = kept ? kept + (t - begin) * s.columns : nullptr;
      if (s.spec.decay == Decay::values) {
        token<true>(s, t, factors, state, o, u);
      } else {
        row_factors(s, t, factors);
        token<false>(s, t, factors, state, o, u);
      }
    }
  }

  // The backward of one token: d_state becomes the gradient of the state before the token. That state is `before`;
  // `kept` has the token's written values. slopes [k_dim, columns] (may be null) is accumulated into.
  template <bool by_values>
  static void token_back(const RecurrenceStep& s, int64_t t, const float* before, const float* kept, const float* d_o,
                         const RecurrenceGradients& out, float* d_state, float* slopes, float* factors, float* d_u) {
    const int64_t rows = s.spec.k_dim, n = s.spec.v_dim, stride = s.columns;
    const float *const k = s.k(t), *const q = s.q(t), *const up = d_o + s.at_values(t);
    float *const dq = out.q + s.at_keys(t), *const dk = out.k + s.at_keys(t);
    const float* const rates = by_values ? s.in.rate + s.at_values(t) : nullptr;
    const float beta = s.spec.delta ? s.in.beta[s.at_head(t)] : 1.0f;
    const auto rate_at = [&](int64_t j) { return by_values ? W::load(rates + j, n - j) : W::zero(); };
    std::memset(d_u, 0, size_t(stride) * sizeof(float));
    for (int64_t i = 0; i < rows; ++i) {
      const W key = W::set(k[i]), query = W::set(q[i]);
      W to_q = W::zero(), to_k = W::zero();
      for (int64_t j = 0; j < stride; j += lanes) {
        float* const at = d_state + i * stride + j;
        const W dy = W::load(up + j, n - j), found = W::load(before + i * stride + j),
                used = W::load(kept + j) * W::set(beta);
        W d = W::load(at);
        if (s.spec.read_before) {
          to_q = Math::fma(found, dy, to_q);
        } else {
          const W after = Math::fma(used, key, found * factor_at<by_values>(s, factors, rate_at(j), i, j));
          to_q = Math::fma(after, dy, to_q);
          d = Math::fma(dy, query, d);
          d.store(at);
        }
        to_k = Math::fma(d, used, to_k);
        Math::fma(d, key, W::load(d_u + j)).store(d_u + j);
      }
      dq[i] = Math::sum(to_q);
      dk[i] = Math::sum(to_k);
    }
    // u = beta (v - S'^T k): d_u becomes the negative gradient of S'^T k.
    if (s.spec.delta) {
      W to_beta = W::zero();
      for (int64_t j = 0; j < stride; j += lanes) {
        const W d = W::load(d_u + j);
        to_beta = Math::fma(d, W::load(kept + j), to_beta);
        (d * W::set(beta)).store(d_u + j);
      }
      out.beta[s.at_head(t)] = Math::sum(to_beta);
    }
    for (int64_t j = 0; j < n; j += lanes) W::load(d_u + j).store(out.v + s.at_values(t) + j, n - j);

    float to_scalar = 0;
    float* const to_rates = by_values ? out.rate + s.at_values(t) : nullptr;
    if constexpr (by_values) std::memset(to_rates, 0, size_t(n) * sizeof(float));
    for (int64_t i = 0; i < rows; ++i) {
      const W key = W::set(k[i]), query = W::set(q[i]);
      W to_k = W::zero(), to_rate = W::zero();
      for (int64_t j = 0; j < stride; j += lanes) {
        float* const at = d_state + i * stride + j;
        const W rate = rate_at(j), factor = factor_at<by_values>(s, factors, rate, i, j);
        const W decayed = W::load(before + i * stride + j) * factor;
        W d = W::load(at);
        if (s.spec.delta) {
          const W back = W::load(d_u + j);
          to_k = Math::fma(decayed, back, to_k);
          d = d - key * back;
        }
        const W along = d * decayed;
        if constexpr (by_values) {
          Math::fma(along, slopes_at(s, i, j), W::load(to_rates + j, n - j)).store(to_rates + j, n - j);
          if (slopes) Math::fma(along, rate, W::load(slopes + i * stride + j)).store(slopes + i * stride + j);
        } else {
          to_rate = to_rate + along;
        }
        d = d * factor;
        if (s.spec.read_before) d = Math::fma(W::load(up + j, n - j), query, d);
        d.store(at);
      }
      if (s.spec.delta) dk[i] -= Math::sum(to_k);
      if constexpr (!by_values) {
        if (s.spec.decay == Decay::keys) out.rate[s.at_keys(t) + i] = Math::sum(to_rate);
        if (s.spec.decay == Decay::scalar) to_scalar += Math::sum(to_rate);
      }
    }
    if (s.spec.decay == Decay::scalar) out.rate[s.at_head(t)] = to_scalar;
  }

  static void recur_back(const RecurrenceStep& s, int64_t begin, int64_t end, const float* before, const float* kept,
                         const float* d_o, const RecurrenceGradients& out, float* d_state, float* slopes) {
    thread_local Scratch<float> scratch;
    float* const factors = scratch.at_least(s.spec.k_dim + lanes + s.columns);
    float* const d_u = factors + s.spec.k_dim + lanes;
    const int64_t size = s.spec.k_dim * s.columns;
    for (int64_t t = end; t-- > begin;) {
      const float *const found = before + (t - begin) * size, *const used = kept + (t - begin) * s.columns;
      if (s.spec.decay == Decay::values) {
        token_back<true>(s, t, found, used, d_o, out, d_state, slopes, factors, d_u);
      } else {
        row_factors(s, t, factors);
        token_back<false>(s, t, found, used, d_o, out, d_state, slopes, factors, d_u);
      }
    }
  }
};

}  // namespace easydel::kernels
