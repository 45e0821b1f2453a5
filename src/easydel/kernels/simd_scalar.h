// A vector of one lane, with which the loops become the reference.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "easydel/kernels/dtype.h"
#include "easydel/kernels/half.h"

namespace easydel::kernels {

struct Scalar {
  using F = float;
  static constexpr int width = 1, registers = 32;

  static F zero() { return 0; }
  static F set1(float x) { return x; }
  static F load(const float* p) { return *p; }
  static void store(float* p, F x) { *p = x; }
  static void store_exact(bf16* p, F x) { p->bits = uint16_t(std::bit_cast<uint32_t>(x) >> 16); }  // x is a bf16
  static void store_exact(float* p, F x) { *p = x; }
  static void store_exact(int8_t* p, F x) { *p = int8_t(x); }
  static void stream(float* p, F x) { *p = x; }
  static F load(const bf16* p) { return widen(*p); }
  static F load(const int8_t* p) { return widen(*p); }
  static F load(const uint8_t* p) { return float(*p); }
  static F load(const e4m3* p) { return widen(*p); }
  static void store(bf16* p, F x) { *p = narrow(x); }
  static void stream(bf16* p, F x) { *p = narrow(x); }
  static void fence() {}   // call it after the last streaming store
  static F rounded(F x) {  // to bf16; x is not a NaN
    const uint32_t u = std::bit_cast<uint32_t>(x);
    return std::bit_cast<float>((u + 0x7fff + (u >> 16 & 1)) & 0xffff0000);
  }
  static F load_halves(const uint8_t* p) {  // numbers of fp16
    uint16_t bits;
    std::memcpy(&bits, p, sizeof bits);
    return kernels::half_value(bits);
  }
  static F rounded_to_half(F x) { return kernels::rounded_to_half(x); }
  static F even(const bf16* pairs) { return widen(pairs[0]); }  // the first of each of `width` pairs of bf16
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
  static F max(F a, F b) { return a > b ? a : b; }  // b if either is a NaN, like the instruction
  static F min(F a, F b) { return a < b ? a : b; }
  static F abs(F a) { return std::fabs(a); }
  static F copy_sign(F a, F sign) { return std::copysign(a, sign); }
  static F round(F a) { return std::nearbyint(a); }
  static F less(F a, F b, F yes, F no) { return a < b ? yes : no; }                           // a < b ? yes : no
  static F power(F whole) { return std::bit_cast<float>(uint32_t(int(whole) + 127) << 23); }  // 2^whole, -126 .. 127
  // y 2^whole; x is near `whole`
  static F scaled(F y, F whole, F x) { return x < -126 ? 0 : y * power(max(-126, whole)); }
  static void transpose(F*) {}
  static float sum(F a) { return a; }  // over all lanes, reduced pairwise
  static float top(F a) { return a; }

  using Table = const float*;
  using Nibbles = uint32_t;
  static Table table(const float* values) { return values; }  // sixteen values
  static Nibbles nibbles(const uint8_t* p) {                  // `width` times eight codes
    return uint32_t(p[0]) | uint32_t(p[1]) << 8 | uint32_t(p[2]) << 16 | uint32_t(p[3]) << 24;
  }
  static F look_up(Table table, Nibbles bits, int i) { return table[bits >> 4 * i & 15]; }
};

// Byte dot products, for as many columns as the vector has floats.
struct ScalarDots {
  using I = int32_t;
  static constexpr int ints = 1, registers = 32;  // ints: of one I

  static I zero() { return 0; }
  static I load(const int32_t* p) { return *p; }
  static void store(int32_t* p, I x) { *p = x; }
  static const uint8_t* bytes(const uint8_t* p) { return p; }  // four bytes per column
  static I add(I sum, const uint8_t* w, const int8_t* x) {     // four bytes of x for all columns
    for (int i = 0; i < 4; ++i) sum += int32_t(w[i]) * x[i];
    return sum;
  }
  static float total(I sum, int32_t offset) { return float(sum - offset); }
};

}  // namespace easydel::kernels
