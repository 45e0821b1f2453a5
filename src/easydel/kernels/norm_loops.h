// Norms of rows, for a vector type V. Included by loops_<set>.cpp only.
#pragma once

#include <cmath>

#include "easydel/kernels/fused.h"
#include "easydel/kernels/memory.h"
#include "easydel/kernels/wide.h"

namespace easydel::kernels {

// Untyped rows, sixteen elements at a time.
template <class V>
struct WideRows {
  using W = Wide<V>;

  static W load(DType dtype, const void* row, int64_t i, int64_t n) {
    return dtype == DType::f32 ? W::load(static_cast<const float*>(row) + i, n - i)
                               : W::load(static_cast<const bf16*>(row) + i, n - i);
  }
  static void store(DType dtype, void* row, int64_t i, int64_t n, W x) {
    if (dtype == DType::f32)
      x.store(static_cast<float*>(row) + i, n - i);
    else
      x.store(static_cast<bf16*>(row) + i, n - i);
  }

  // The sum over i of term(i), which returns the sixteen terms from i (0 beyond n). Four accumulators in turn, then
  // one.
  template <class Term>
  static float sum(int64_t n, const Term& term) {
    W sums[4] = {W::zero(), W::zero(), W::zero(), W::zero()};
    int64_t i = 0;
    for (; i + 4 * lanes <= n; i += 4 * lanes)
      for (int64_t j = 0; j < 4; ++j) sums[j] = sums[j] + term(i + j * lanes);
    for (int64_t j = 0; i < n; i += lanes, ++j) sums[j] = sums[j] + term(i);
    return WideMath<V>::sum((sums[0] + sums[1]) + (sums[2] + sums[3]));
  }
};

template <class V>
struct NormLoops {
  using W = Wide<V>;
  using Math = WideMath<V>;
  using Rows = WideRows<V>;

  static W weight_at(const NormSpec& spec, const Input& weight, int64_t i, int64_t n) {
    const W offset = W::set(spec.weight_offset);
    return weight.data ? Rows::load(weight.dtype, weight.data, i, n) + offset : W::set(1);
  }
  // Rounded to the dtype and back.
  static W rounded(DType dtype, W x) {
    if (dtype == DType::f32) return x;
    bf16 bits[lanes];
    x.store(bits);
    return W::load(bits);
  }

  static void rms_norm(const NormSpec& spec, Input x, Input weight, int64_t row, int64_t n, Output y, float* rstd) {
    const void* const from = x.at(row);
    void* const to = y.at(row);
    const auto square = [&](int64_t i) {
      const W v = Rows::load(x.dtype, from, i, n);
      return v * v;
    };
    const float factor = 1 / std::sqrt(Rows::sum(n, square) / float(n) + spec.eps);
    if (rstd) rstd[row] = factor;
    for (int64_t i = 0; i < n; i += lanes) {
      W v = Rows::load(x.dtype, from, i, n) * W::set(factor);
      if (spec.round_before_weight) v = rounded(x.dtype, v);
      if (weight.data) v = v * weight_at(spec, weight, i, n);
      Rows::store(y.dtype, to, i, n, v);
    }
  }

  // dx of one row; dweight accumulates the row's contribution.
  static void rms_norm_backward(const NormSpec& spec, Input dy, Input x, Input weight, const float* rstd, int64_t row,
                                int64_t n, Output dx, float* dweight) {
    const void *const dy_row = dy.at(row), *const x_row = x.at(row);
    const W factor = W::set(rstd[row]);
    const auto gradient = [&](int64_t i) { return Rows::load(dy.dtype, dy_row, i, n) * weight_at(spec, weight, i, n); };
    const auto normal = [&](int64_t i) { return Rows::load(x.dtype, x_row, i, n) * factor; };
    const W mean = W::set(Rows::sum(n, [&](int64_t i) { return gradient(i) * normal(i); }) / float(n));
    for (int64_t i = 0; i < n; i += lanes) {
      const W v = normal(i), g = gradient(i);
      if (dweight)
        Math::fma(Rows::load(dy.dtype, dy_row, i, n), v, W::load(dweight + i, n - i)).store(dweight + i, n - i);
      Rows::store(dx.dtype, dx.at(row), i, n, (g - v * mean) * factor);
    }
  }

  static void layer_norm(const NormSpec& spec, Input x, Input weight, Input bias, int64_t row, int64_t n, Output y,
                         float* moments) {
    const void* const from = x.at(row);
    void* const to = y.at(row);
    const float mean = Rows::sum(n, [&](int64_t i) { return Rows::load(x.dtype, from, i, n); }) / float(n);
    const auto centred = [&](int64_t i) { return Rows::load(x.dtype, from, i, n) - W::set(mean); };
    const auto square = [&](int64_t i) {
      const W v = i + lanes <= n ? centred(i) : Math::less(Math::count(), W::set(float(n - i)), centred(i), W::zero());
      return v * v;
    };
    const float factor = 1 / std::sqrt(Rows::sum(n, square) / float(n) + spec.eps);
    if (moments) moments[2 * row] = mean, moments[2 * row + 1] = factor;
    for (int64_t i = 0; i < n; i += lanes) {
      W v = centred(i) * W::set(factor);
      if (weight.data) v = v * weight_at(spec, weight, i, n);
      if (bias.data) v = v + Rows::load(bias.dtype, bias.data, i, n);
      Rows::store(y.dtype, to, i, n, v);
    }
  }

  static void layer_norm_backward(const NormSpec& spec, Input dy, Input x, Input weight, const float* moments,
                                  int64_t row, int64_t n, Output dx, float* dweight, float* dbias) {
    const void *const dy_row = dy.at(row), *const x_row = x.at(row);
    const W mean = W::set(moments[2 * row]), factor = W::set(moments[2 * row + 1]);
    const auto gradient = [&](int64_t i) { return Rows::load(dy.dtype, dy_row, i, n) * weight_at(spec, weight, i, n); };
    const auto normal = [&](int64_t i) { return (Rows::load(x.dtype, x_row, i, n) - mean) * factor; };
    const W along = W::set(Rows::sum(n, [&](int64_t i) { return gradient(i) * normal(i); }) / float(n));
    const W level = W::set(Rows::sum(n, gradient) / float(n));
    for (int64_t i = 0; i < n; i += lanes) {
      const W v = normal(i), g = gradient(i), up = Rows::load(dy.dtype, dy_row, i, n);
      if (dweight) Math::fma(up, v, W::load(dweight + i, n - i)).store(dweight + i, n - i);
      if (dbias) (W::load(dbias + i, n - i) + up).store(dbias + i, n - i);
      Rows::store(dx.dtype, dx.at(row), i, n, (g - level - v * along) * factor);
    }
  }
};

}  // namespace easydel::kernels
