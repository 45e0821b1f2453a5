// Sixteen floats in any kind of registers. Sums and functions written with them have the same bits on every set,
// because every lane does the same steps. Included by loops_<set>.cpp only, through others.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "easydel/kernels/dtype.h"

namespace easydel::kernels {

constexpr int64_t lanes = 16;

template <class V>
struct Wide {
  static constexpr int parts = int(lanes) / V::width;
  typename V::F part[parts];

  template <class Make>
  [[gnu::always_inline]] static Wide make(const Make& one) {
    Wide out;
#pragma GCC unroll 16
    for (int i = 0; i < parts; ++i) out.part[i] = one(i);
    return out;
  }
  static Wide set(float x) {
    return make([&](int) { return V::set1(x); });
  }
  static Wide zero() { return set(0); }
  template <class T>
  static Wide load(const T* p) {
    return make([&](int i) { return V::load(p + i * V::width); });
  }
  template <class T>
  void store(T* p) const {
#pragma GCC unroll 16
    for (int i = 0; i < parts; ++i) V::store(p + i * V::width, part[i]);
  }
  // Of numbers that T represents exactly.
  template <class T>
  void store_exact(T* p) const {
#pragma GCC unroll 16
    for (int i = 0; i < parts; ++i) V::store_exact(p + i * V::width, part[i]);
  }
  // Non-temporal stores of whole cache lines; call V::fence() after the last.
  template <class T>
  void stream(T* p) const {
#pragma GCC unroll 16
    for (int i = 0; i < parts; ++i) V::stream(p + i * V::width, part[i]);
  }
  // The first `count` (0 to 16); the other lanes are `fill`.
  template <class T>
  static Wide load(const T* p, int64_t count, float fill = 0) {
    if (count >= lanes) return load(p);
    float all[lanes];
    for (int64_t i = 0; i < lanes; ++i) all[i] = i < count ? widen(p[i]) : fill;
    return load(all);
  }
  template <class T>
  void store(T* p, int64_t count) const {
    if (count >= lanes) return store(p);
    T all[lanes];
    store(all);
    if (count > 0) std::memcpy(p, all, size_t(count) * sizeof(T));
  }
};

template <class V>
Wide<V> operator+(Wide<V> a, Wide<V> b) {
  return Wide<V>::make([&](int i) { return V::add(a.part[i], b.part[i]); });
}
template <class V>
Wide<V> operator-(Wide<V> a, Wide<V> b) {
  return Wide<V>::make([&](int i) { return V::sub(a.part[i], b.part[i]); });
}
template <class V>
Wide<V> operator*(Wide<V> a, Wide<V> b) {
  return Wide<V>::make([&](int i) { return V::mul(a.part[i], b.part[i]); });
}
template <class V>
Wide<V> operator/(Wide<V> a, Wide<V> b) {
  return Wide<V>::make([&](int i) { return V::div(a.part[i], b.part[i]); });
}

template <class V>
struct WideMath {
  using W = Wide<V>;

  static W fma(W a, W b, W c) {
    return W::make([&](int i) { return V::fma(a.part[i], b.part[i], c.part[i]); });
  }
  static W max(W a, W b) {
    return W::make([&](int i) { return V::max(a.part[i], b.part[i]); });
  }
  static W min(W a, W b) {
    return W::make([&](int i) { return V::min(a.part[i], b.part[i]); });
  }
  static W abs(W a) {
    return W::make([&](int i) { return V::abs(a.part[i]); });
  }
  static W sqrt(W a) {
    return W::make([&](int i) { return V::sqrt(a.part[i]); });
  }
  static W round(W a) {
    return W::make([&](int i) { return V::round(a.part[i]); });
  }
  static W rounded(W a) {  // to bf16; a has no NaN
    return W::make([&](int i) { return V::rounded(a.part[i]); });
  }
  static W copy_sign(W a, W sign) {
    return W::make([&](int i) { return V::copy_sign(a.part[i], sign.part[i]); });
  }
  static W less(W a, W b, W yes, W no) {
    return W::make([&](int i) { return V::less(a.part[i], b.part[i], yes.part[i], no.part[i]); });
  }
  static W power(W whole) {
    return W::make([&](int i) { return V::power(whole.part[i]); });
  }

  // Which NaN an operation returns depends on the order of its operands in the instruction.
  static W one_nan(W a) { return less(a, W::zero(), a, less(W::set(-1), a, a, W::set(NAN))); }

  // Lanes reduced pairwise: 16, 8, 4, 2, 1.
  static float sum(W a) {
    for (int half = W::parts / 2; half > 0; half /= 2)
      for (int i = 0; i < half; ++i) a.part[i] = V::add(a.part[i], a.part[i + half]);
    return V::sum(a.part[0]);
  }
  static float top(W a) {
    for (int half = W::parts / 2; half > 0; half /= 2)
      for (int i = 0; i < half; ++i) a.part[i] = V::max(a.part[i], a.part[i + half]);
    return V::top(a.part[0]);
  }

  // Lane i is i.
  static W count() {
    alignas(64) static constexpr float ascending[lanes] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    return W::load(ascending);
  }

  // The polynomials below are minimax fits made for this file; their errors are smaller than the rounding of their
  // results.

  // 2^x for x <= 0, at most 2 units in the last place off; below 2^-126 it is 0.
  static W exp2_of_negative(W x) {
    const W whole = round(max(W::set(-127), x)), f = x - whole;
    W y = W::set(0.00015353360504377633f);
    y = fma(y, f, W::set(0.0013398875016719103f));
    y = fma(y, f, W::set(0.00961843691766262f));
    y = fma(y, f, W::set(0.055503323674201965f));
    y = fma(y, f, W::set(0.24022647738456726f));
    y = fma(y, f, W::set(0.6931471824645996f));
    y = fma(y, f, W::set(1));
    return W::make([&](int i) { return V::scaled(y.part[i], whole.part[i], x.part[i]); });
  }
  static float exp2_of_negative(float x) {
    float all[lanes];
    exp2_of_negative(W::set(x)).store(all);
    return all[0];
  }

  // e^x; results below 2^-126 are 0, above the largest number infinite.
  static W exp(W x) {
    const W bounded = min(W::set(89), max(W::set(-89), x));
    const W whole = round(bounded * W::set(1.44269504f));
    const W r = fma(whole, W::set(1.90465421e-9f), fma(whole, W::set(-0.693147182f), bounded));
    W y = W::set(0.0013950485736131668f);
    y = fma(y, r, W::set(0.008368887938559055f));
    y = fma(y, r, W::set(0.04166620597243309f));
    y = fma(y, r, W::set(0.166665181517601f));
    y = fma(y, r, W::set(0.5f));
    y = fma(y, r * r, r) + W::set(1);
    const W half = round(whole * W::set(0.5f));
    y = y * power(half) * power(whole - half);
    return less(x, W::set(-87.3365447f), W::zero(), y);
  }

  static W sigmoid(W x) {
    const W small = exp(W::zero() - abs(x)), whole = W::set(1) + small;  // of -|x|, so that nothing overflows
    return less(x, W::zero(), small, W::set(1)) / whole;
  }

  static W tanh(W x) {
    const W size = abs(x), z = x * x;
    W p = W::set(-0.005717036779969931f);
    p = fma(p, z, W::set(0.020650578662753105f));
    p = fma(p, z, W::set(-0.05374349653720856f));
    p = fma(p, z, W::set(0.13331490755081177f));
    p = fma(p, z, W::set(-0.3333328366279602f));
    const W near = fma(x * z, p, x);
    const W far = W::set(1) - W::set(2) / (exp(size + size) + W::set(1));
    return less(size, W::set(0.625f), near, copy_sign(far, x));
  }

  // erfc(x) for x >= 0: e^(-x^2) times a polynomial in 1 / (1 + 0.4 x).
  static W erfc_of_positive(W x) {
    const W t = W::set(1) / fma(x, W::set(0.4f), W::set(1));
    W p = W::set(-0.02863762527704239f);
    p = fma(p, t, W::set(0.19282610714435577f));
    p = fma(p, t, W::set(-0.4866381585597992f));
    p = fma(p, t, W::set(0.5312389731407166f));
    p = fma(p, t, W::set(-0.2709329128265381f));
    p = fma(p, t, W::set(0.2648787498474121f));
    p = fma(p, t, W::set(0.13215485215187073f));
    p = fma(p, t, W::set(0.2143910527229309f));
    p = fma(p, t, W::set(0.22501523792743683f));
    p = fma(p, t, W::set(0.2257036715745926f));
    return p * t * exp(W::zero() - x * x);
  }

  // The cumulative distribution function of the normal distribution.
  static W normal_below(W x) {
    const W tail = W::set(0.5f) * erfc_of_positive(abs(x) * W::set(0.707106781f));
    return less(x, W::zero(), tail, W::set(1) - tail);
  }
};

}  // namespace easydel::kernels
