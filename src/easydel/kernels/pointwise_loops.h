// Rotation, activations, the loss and the optimizer, for a vector type V. Included by loops_<set>.cpp only.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>

#include "easydel/kernels/loops.h"
#include "easydel/kernels/norm_loops.h"

namespace easydel::kernels {

template <class V>
struct PointwiseLoops {
  using W = Wide<V>;
  using Math = WideMath<V>;
  using Rows = WideRows<V>;

  // Rotates one head of one token, in place or to another place. Products and sums are rounded separately, as in
  // Hugging Face's x cos + rotate_half(x) sin.
  template <class T>
  static void rotate(const T* x, T* y, int64_t pairs, const float* cos, const float* sin, bool interleaved,
                     bool inverse) {
    const W sign = W::set(inverse ? -1.0f : 1.0f);
    for (int64_t i = 0; i < pairs; i += lanes) {
      const int64_t count = std::min(lanes, pairs - i);
      const W c = W::load(cos + i, count), s = W::load(sin + i, count) * sign;
      W a, b;
      if (interleaved) {
        float first[lanes] = {}, second[lanes] = {};
        for (int64_t j = 0; j < count; ++j) first[j] = widen(x[2 * (i + j)]), second[j] = widen(x[2 * (i + j) + 1]);
        a = W::load(first), b = W::load(second);
      } else {
        a = W::load(x + i, count), b = W::load(x + pairs + i, count);
      }
      const W left = a * c - b * s, right = b * c + a * s;
      if (interleaved) {
        T first[lanes], second[lanes];
        left.store(first), right.store(second);
        for (int64_t j = 0; j < count; ++j) y[2 * (i + j)] = first[j], y[2 * (i + j) + 1] = second[j];
      } else {
        left.store(y + i, count), right.store(y + pairs + i, count);
      }
    }
  }
  static void rotate_heads(Heads x, MutableHeads y, int64_t token, int64_t heads, int64_t dim, int64_t pairs,
                           const float* cos, const float* sin, bool interleaved, bool inverse) {
    const int64_t rest = dim - 2 * pairs, bytes = bytes_of(x.dtype);
    for (int64_t h = 0; h < heads; ++h) {
      const void* const from = x.at(token, h);
      void* const to = y.at(token, h);
      if (x.dtype == DType::f32)
        rotate(static_cast<const float*>(from), static_cast<float*>(to), pairs, cos, sin, interleaved, inverse);
      else
        rotate(static_cast<const bf16*>(from), static_cast<bf16*>(to), pairs, cos, sin, interleaved, inverse);
      if (from != to && rest > 0)
        std::memcpy(static_cast<char*>(to) + 2 * pairs * bytes, static_cast<const char*>(from) + 2 * pairs * bytes,
                    size_t(rest * bytes));
    }
  }

  struct ValueAndSlope {
    W value, slope;
  };
  static ValueAndSlope act(Activation activation, W x) {
    const W one = W::set(1), half = W::set(0.5f);
    if (activation == Activation::silu) {
      const W s = Math::sigmoid(x), value = x * s;
      return {value, Math::fma(value, one - s, s)};
    }
    if (activation == Activation::sigmoid) {
      const W s = Math::sigmoid(x);
      return {s, s * (one - s)};
    }
    if (activation == Activation::tanh) {
      const W t = Math::tanh(x);
      return {t, one - t * t};
    }
    if (activation == Activation::exp) {
      const W e = Math::exp(x);
      return {e, e};
    }
    if (activation == Activation::mish) return mish(x);
    if (activation == Activation::gelu) {
      const W below = Math::normal_below(x), density = W::set(0.398942280f) * Math::exp(W::set(-0.5f) * x * x);
      return {x * below, Math::fma(x, density, below)};
    }
    const W root = W::set(0.797884561f), cubic = W::set(0.044715f);
    const W t = Math::tanh(root * Math::fma(cubic * x * x, x, x)), below = Math::fma(half, t, half);
    const W inner = root * Math::fma(W::set(0.134145f) * x, x, one);
    return {x * below, Math::fma(half * x * (one - t * t), inner, below)};
  }

  // x tanh(log(1 + e^x)), arXiv 1908.08681. With e = e^-|x|, the hyperbolic tangent is t = n / d, where n = 1 + 2e and
  // d = n + 2e^2 for x >= 0, else n = e (e + 2) and d = n + 2: nothing overflows, and nothing is cancelled.
  static ValueAndSlope mish(W x) {
    const W zero = W::zero(), one = W::set(1), two = W::set(2);
    const W e = Math::exp(zero - Math::abs(x)), double_e = e + e;
    const W n = Math::less(x, zero, Math::fma(e, e, double_e), one + double_e);
    const W d = n + Math::less(x, zero, two, double_e * e);
    const W t = n / d;
    // The derivative is t + x (1 - t^2) / (1 + e^-x).
    const W rest = W::set(4) * Math::less(x, zero, e, e * e) * (one + e) / (d * d);
    return {x * t, Math::fma(x, rest, t)};
  }

  static void activate(Activation activation, Input gate, Input up, int64_t row, int64_t n, Output y) {
    for (int64_t i = 0; i < n; i += lanes) {
      W value = act(activation, Rows::load(gate.dtype, gate.at(row), i, n)).value;
      if (up.data) value = value * Rows::load(up.dtype, up.at(row), i, n);
      Rows::store(y.dtype, y.at(row), i, n, value);
    }
  }
  static void activate_backward(Activation activation, Input dy, Input gate, Input up, int64_t row, int64_t n,
                                Output dgate, Output dup, Output y) {
    for (int64_t i = 0; i < n; i += lanes) {
      const W g = Rows::load(dy.dtype, dy.at(row), i, n);
      const ValueAndSlope a = act(activation, Rows::load(gate.dtype, gate.at(row), i, n));
      W slope = g * a.slope, value = a.value;
      if (up.data) {
        const W u = Rows::load(up.dtype, up.at(row), i, n);
        slope = slope * u, value = value * u;
        Rows::store(dup.dtype, dup.at(row), i, n, g * a.value);
      }
      Rows::store(dgate.dtype, dgate.at(row), i, n, slope);
      if (y.data) Rows::store(y.dtype, y.at(row), i, n, value);
    }
  }

  static void cross_entropy(const CrossEntropySpec& spec, Output logits, int64_t label, int64_t row, int64_t n,
                            float* loss, float* lse, const float* scales) {
    void* const x = logits.at(row);
    if (label == spec.ignore_label) {
      loss[row] = lse[row] = 0;
      for (int64_t i = 0; scales && i < n; i += lanes) Rows::store(logits.dtype, x, i, n, W::zero());
      return;
    }
    W highest = W::set(-INFINITY);
    for (int64_t i = 0; i < n; i += lanes) highest = Math::max(highest, at(logits.dtype, x, i, n));
    const float top = Math::top(highest);
    const float sum = Rows::sum(n, [&](int64_t i) { return Math::exp(at(logits.dtype, x, i, n) - W::set(top)); });
    const double log_sum = std::log(double(sum)), all = double(top) + log_sum;
    const float own = logits.dtype == DType::f32 ? static_cast<float*>(x)[label] : widen(static_cast<bf16*>(x)[label]);
    const float smooth = spec.label_smoothing;
    double value = (double(top) - double(own) + log_sum) * (1 - double(smooth));
    if (smooth > 0) {
      const float total = Rows::sum(n, [&](int64_t i) { return Rows::load(logits.dtype, x, i, n); });
      value += double(smooth) * (all - double(total) / double(n));
    }
    loss[row] = float(value + double(spec.z_loss) * all * all);
    lse[row] = float(all);
    if (!scales) return;
    const float scale = scales[row];
    const W share = W::set(float(double(scale) * (1 + 2 * double(spec.z_loss) * all) / double(sum)));
    const W even = W::set(scale * smooth / float(n));
    const float of_label = scale * (1 - smooth);
    for (int64_t i = 0; i < n; i += lanes) {
      W g = Math::exp(at(logits.dtype, x, i, n) - W::set(top)) * share - even;
      if (label >= i && label < i + lanes) {
        float all_lanes[lanes];
        g.store(all_lanes);
        all_lanes[label - i] -= of_label;
        g = W::load(all_lanes);
      }
      Rows::store(logits.dtype, x, i, n, g);
    }
  }

  static void log_probability(Input logits, int64_t label, int64_t row, int64_t n, const LogProbabilities& out) {
    const void* const x = logits.at(row);
    W highest = W::set(-INFINITY);
    for (int64_t i = 0; i < n; i += lanes) highest = Math::max(highest, at(logits.dtype, x, i, n));
    const float top = Math::top(highest);
    W weighted[4] = {W::zero(), W::zero(), W::zero(), W::zero()};
    const W least = W::set(-100);  // e^x is 0 there, so that -infinity times it is 0, too
    const float sum = Rows::sum(n, [&](int64_t i) {
      const W below = at(logits.dtype, x, i, n) - W::set(top), e = Math::exp(below);
      W& to = weighted[i / lanes % 4];
      if (out.entropy) to = Math::fma(e, Math::max(least, below), to);
      return e;
    });
    const double log_sum = std::log(double(sum));
    const auto logit = [&](int64_t i) {
      return logits.dtype == DType::f32 ? static_cast<const float*>(x)[i] : widen(static_cast<const bf16*>(x)[i]);
    };
    const float own = logit(label);
    out.logps[row] = float(double(own) - double(top) - log_sum);
    out.lse[row] = float(double(top) + log_sum);
    if (out.entropy) {
      const float all = Math::sum((weighted[0] + weighted[1]) + (weighted[2] + weighted[3]));
      out.entropy[row] = float(log_sum - double(all) / double(sum));
    }
    if (out.correct) {
      int64_t first = own == top ? 0 : n;
      while (first < label && logit(first) != top) ++first;
      out.correct[row] = first == label;
    }
  }

  static void log_probability_backward(const LogProbabilityGradient& g, Input logits, int64_t label, int64_t row,
                                       int64_t n, Output dlogits) {
    const float of_label = g.of_label ? g.of_label[row] : 0, of_uniform = g.of_uniform ? g.of_uniform[row] : 0;
    const float of_lse = (g.of_lse ? g.of_lse[row] : 0) - of_label - of_uniform;
    const W lse = W::set(g.lse[row]), share = W::set(of_lse * g.scale);
    const W even = W::set(of_uniform / float(n) * g.scale);
    const void* const x = logits.at(row);
    void* const to = dlogits.at(row);
    for (int64_t i = 0; i < n; i += lanes) {
      W d = Math::fma(Math::exp(at(logits.dtype, x, i, n) - lse), share, even);
      if (label >= i && label < i + lanes) {
        float all[lanes];
        d.store(all);
        all[label - i] += of_label * g.scale;
        d = W::load(all);
      }
      Rows::store(dlogits.dtype, to, i, n, d);
    }
  }

  static void copy_row(const void* from, DType dtype, int64_t n, void* to, DType to_dtype) {
    if (dtype == to_dtype) {
      std::memcpy(to, from, size_t(n * bytes_of(dtype)));
      return;
    }
    for (int64_t i = 0; i < n; i += lanes) Rows::store(to_dtype, to, i, n, Rows::load(dtype, from, i, n));
  }
  static void add_row(const void* from, DType dtype, int64_t n, float* to) {
    for (int64_t i = 0; i < n; i += lanes)
      Rows::store(DType::f32, to, i, n, Rows::load(DType::f32, to, i, n) + Rows::load(dtype, from, i, n));
  }
  static void sum_rows(Input a, Input b, int64_t row, int64_t n, Output sum) {
    for (int64_t i = 0; i < n; i += lanes)
      Rows::store(sum.dtype, sum.at(row), i, n,
                  Rows::load(a.dtype, a.at(row), i, n) + Rows::load(b.dtype, b.at(row), i, n));
  }

  template <class T>
  static void adamw(const AdamWStep& s, int64_t n, float* p, const T* gradient, float* m, float* v, bf16* copy) {
    constexpr int64_t prefetch_distance = 32 * lanes;
    const bool streams = reinterpret_cast<uintptr_t>(copy) % 64 == 0;  // the copy is not read soon
    for (int64_t i = 0; i < n; i += lanes) {
      V::prefetch(p + i + prefetch_distance), V::prefetch(gradient + i + prefetch_distance);
      V::prefetch(m + i + prefetch_distance), V::prefetch(v + i + prefetch_distance);
      const int64_t left = n - i;
      const W g = W::load(gradient + i, left) * W::set(s.grad_scale);
      const W first = W::load(m + i, left), second = W::load(v + i, left);
      const W first_now = Math::fma(W::set(s.one_minus_beta1), g - first, first);
      const W second_now = Math::fma(W::set(s.one_minus_beta2) * g, g, second * W::set(s.beta2));
      const W denominator = Math::sqrt(second_now) / W::set(s.root_of_correction2) + W::set(s.eps);
      const W now = W::load(p + i, left) * W::set(s.decay) - W::set(s.step_size) * first_now / denominator;
      now.store(p + i, left), first_now.store(m + i, left), second_now.store(v + i, left);
      if (!copy) continue;
      if (streams && left >= lanes)
        now.stream(copy + i);
      else
        now.store(copy + i, left);
    }
    if (copy) V::fence();
  }
  static void adamw_untyped(const AdamWStep& s, int64_t n, float* p, const void* gradient, DType dtype, float* m,
                            float* v, bf16* copy) {
    if (dtype == DType::f32)
      adamw(s, n, p, static_cast<const float*>(gradient), m, v, copy);
    else
      adamw(s, n, p, static_cast<const bf16*>(gradient), m, v, copy);
  }

  // Sixteen sums of the squares of value(i) in double precision, reduced pairwise.
  template <class Value>
  static double sum_of_squares(int64_t n, const Value& value) {
    double sums[lanes] = {};
    int64_t i = 0;
    for (; i + lanes <= n; i += lanes)
      for (int64_t j = 0; j < lanes; ++j) {
        const double one = value(i + j);
        sums[j] += one * one;
      }
    for (int64_t j = 0; i + j < n; ++j) {
      const double one = value(i + j);
      sums[j] += one * one;
    }
    for (int64_t half = lanes / 2; half > 0; half /= 2)
      for (int64_t j = 0; j < half; ++j) sums[j] += sums[j + half];
    return sums[0];
  }
  // work(p) for p as a pointer to its dtype.
  template <class Work>
  static double typed(const void* p, DType dtype, const Work& work) {
    return dtype == DType::f32 ? work(static_cast<const float*>(p)) : work(static_cast<const bf16*>(p));
  }
  static double squares_untyped(const void* x, DType dtype, int64_t n) {
    return typed(x, dtype, [&](auto* p) { return sum_of_squares(n, [&](int64_t i) { return widen(p[i]); }); });
  }
  static double squared_differences(const void* x, DType x_dtype, const void* y, DType y_dtype, int64_t n) {
    return typed(x, x_dtype, [&](auto* p) {
      return typed(y, y_dtype,
                   [&](auto* q) { return sum_of_squares(n, [&](int64_t i) { return widen(p[i]) - widen(q[i]); }); });
    });
  }

 private:
  static W at(DType dtype, const void* x, int64_t i, int64_t n) {  // -infinity beyond n
    return dtype == DType::f32 ? W::load(static_cast<const float*>(x) + i, n - i, -INFINITY)
                               : W::load(static_cast<const bf16*>(x) + i, n - i, -INFINITY);
  }
};

}  // namespace easydel::kernels
