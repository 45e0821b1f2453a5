// The vector of one lane: with it the loops become the reference.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "easydel/kernels/number.h"

namespace easydel::kernels {

struct Scalar {
  using F = float;
  static constexpr int width = 1, registers = 32;

  static F zero() { return 0; }
  static F set1(float x) { return x; }
  static F load(const float* p) { return *p; }
  static void store(float* p, F x) { *p = x; }
  static void stream(float* p, F x) { *p = x; }
  static F load(const bf16* p) { return widen(*p); }
  static void store(bf16* p, F x) { *p = narrow(x); }
  static F even(const bf16* pairs) { return widen(pairs[0]); }  // of `width` pairs of bf16, the first of each
  static F odd(const bf16* pairs) { return widen(pairs[1]); }
  static F load_pairs(const bf16* p) { return std::bit_cast<float>(uint32_t(p[1].bits) << 16 | p[0].bits); }
  static void store_pairs(bf16* p, F x) {
    const uint32_t bits = std::bit_cast<uint32_t>(x);
    p[0].bits = uint16_t(bits), p[1].bits = uint16_t(bits >> 16);
  }
  static void prefetch(const void*) {}

  static F add(F a, F b) { return a + b; }
  static F sub(F a, F b) { return a - b; }
  static F mul(F a, F b) { return a * b; }
  static F div(F a, F b) { return a / b; }
  static F sqrt(F a) { return std::sqrt(a); }
  static F fma(F a, F b, F c) { return std::fma(a, b, c); }
  static F max(F a, F b) { return a > b ? a : b; }  // b if either is a NaN, as the instruction has it
  static F min(F a, F b) { return a < b ? a : b; }
  static F abs(F a) { return std::fabs(a); }
  static F copy_sign(F a, F sign) { return std::copysign(a, sign); }
  static F round(F a) { return std::nearbyint(a); }
  static F less(F a, F b, F yes, F no) { return a < b ? yes : no; }                           // a < b ? yes : no
  static F power(F whole) { return std::bit_cast<float>(uint32_t(int(whole) + 127) << 23); }  // 2^whole, -126 .. 127
  static void transpose(F*) {}
};

}  // namespace easydel::kernels
