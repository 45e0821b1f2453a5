// Vectors of 16 floats. Include only where the target is AVX-512 F, BW, VL, DQ (see loops_avx512.cpp).
#pragma once

#include <immintrin.h>

#include <array>
#include <bit>

#include "easydel/kernels/dtype.h"

namespace easydel::kernels {

struct Avx512 {
  using F = __m512;
  static constexpr int width = 16, registers = 32;

  static F zero() { return _mm512_setzero_ps(); }
  static F set1(float x) { return _mm512_set1_ps(x); }
  static F load(const float* p) { return _mm512_loadu_ps(p); }
  static void store(float* p, F x) { _mm512_storeu_ps(p, x); }
  static void store_exact(bf16* p, F x) {
    const __m512i bits = _mm512_srli_epi32(_mm512_castps_si512(x), 16);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtepi32_epi16(bits));
  }
  static void store_exact(float* p, F x) { store(p, x); }
  static void store_exact(int8_t* p, F x) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(x)));
  }
  static void stream(float* p, F x) { _mm512_stream_ps(p, x); }
  static F load(const bf16* p) {
    const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
  }
  static F load(const int8_t* p) {
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
  }
  static F load(const uint8_t* p) {
    return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
  }
  static F load(const e4m3* p) {
    // As fp16 with the same bits of exponent and mantissa, whose bias is 15 instead of 7.
    const __m256i x = _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
    const __m256i half = _mm256_and_si256(_mm256_slli_epi16(x, 7), _mm256_set1_epi16(int16_t(0xbfff)));
    return _mm512_mul_ps(_mm512_cvtph_ps(half), _mm512_set1_ps(0x1p8f));
  }
  // 32 codes.
  static void widen_codes(const e4m3* p, bf16* to) {
    alignas(64) static constexpr uint16_t small[32] = {0, 0x3b00, 0x3b80, 0x3bc0, 0x3c00, 0x3c20, 0x3c40, 0x3c60};
    const __m512i x = _mm512_cvtepu8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
    const __m512i size = _mm512_and_si512(x, _mm512_set1_epi16(0x7f));
    const __m512i sign = _mm512_slli_epi16(_mm512_sub_epi16(x, size), 8);
    const __m512i normal = _mm512_add_epi16(_mm512_slli_epi16(size, 4), _mm512_set1_epi16(120 << 7));
    const __mmask32 is_small = _mm512_cmplt_epi16_mask(size, _mm512_set1_epi16(8));
    const __m512i y = _mm512_mask_permutexvar_epi16(normal, is_small, size, _mm512_load_si512(small));
    _mm512_storeu_si512(to, _mm512_or_si512(sign, y));
  }
  static void widen_codes(const int8_t* p, bf16* to) { store_exact(to, load(p)), store_exact(to + 16, load(p + 16)); }
  static void widen_codes(const i4_pair* p, bf16* to) {
    const __m256i pairs = _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
    const __m512i halves = _mm512_inserti64x4(_mm512_castsi256_si512(pairs), _mm256_srli_epi16(pairs, 4), 1);
    _mm512_storeu_si512(to, numbers_of_i4(halves));
  }
  // Words whose low four bits are a code, to bf16.
  static __m512i numbers_of_i4(__m512i codes) {
    alignas(64) static constexpr auto numbers = [] {  // twice, because VPERMW reads five bits
      std::array<uint16_t, 32> out{};
      for (int i = 0; i < 32; ++i) out[size_t(i)] = uint16_t(std::bit_cast<uint32_t>(float(i % 16 - 8)) >> 16);
      return out;
    }();
    return _mm512_permutexvar_epi16(codes, _mm512_load_si512(numbers.data()));
  }
  static void store(bf16* p, F x) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), narrowed(x)); }
  static void stream(bf16* p, F x) { _mm256_stream_si256(reinterpret_cast<__m256i*>(p), narrowed(x)); }
  static void fence() { _mm_sfence(); }
  // Not VCVTNEPS2BF16: that one flushes denormals.
  static __m256i narrowed(F x) {
    const __m512i rounded = _mm512_srli_epi32(_mm512_castps_si512(Avx512::rounded(x)), 16);
    const __mmask16 nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
    const __m512i bits = _mm512_mask_mov_epi32(rounded, nan, _mm512_set1_epi32(0x7fc0));
    return _mm512_cvtepi32_epi16(bits);
  }
  static F rounded(F x) {  // to bf16; x is not a NaN
    const __m512i u = _mm512_castps_si512(x), tie = _mm512_and_si512(_mm512_srli_epi32(u, 16), _mm512_set1_epi32(1));
    const __m512i sum = _mm512_add_epi32(u, _mm512_add_epi32(_mm512_set1_epi32(0x7fff), tie));
    return _mm512_castsi512_ps(_mm512_and_si512(sum, _mm512_set1_epi32(int(0xffff0000))));
  }
  static F load_halves(const uint8_t* p) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  }
  static F rounded_to_half(F x) {
    return _mm512_cvtph_ps(_mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
  }
  static F even(const bf16* pairs) { return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_loadu_si512(pairs), 16)); }
  static F odd(const bf16* pairs) {
    return _mm512_castsi512_ps(_mm512_and_si512(_mm512_loadu_si512(pairs), _mm512_set1_epi32(int(0xffff0000))));
  }
  static F load_pairs(const bf16* p) { return _mm512_castsi512_ps(_mm512_loadu_si512(p)); }  // bits are only moved
  static void store_pairs(bf16* p, F x) { _mm512_storeu_si512(p, _mm512_castps_si512(x)); }
  static void prefetch(const void* p) { _mm_prefetch(static_cast<const char*>(p), _MM_HINT_T0); }

  static F alternate(F even, F odd) { return _mm512_mask_blend_ps(0xaaaa, even, odd); }  // lanes of each in turn
  static F add(F a, F b) { return _mm512_add_ps(a, b); }
  static F sub(F a, F b) { return _mm512_sub_ps(a, b); }
  static F mul(F a, F b) { return _mm512_mul_ps(a, b); }
  static F div(F a, F b) { return _mm512_div_ps(a, b); }
  static F sqrt(F a) { return _mm512_sqrt_ps(a); }
  static F fma(F a, F b, F c) { return _mm512_fmadd_ps(a, b, c); }
  static F max(F a, F b) { return _mm512_max_ps(a, b); }
  static F min(F a, F b) { return _mm512_min_ps(a, b); }
  static F abs(F a) { return _mm512_abs_ps(a); }
  static F copy_sign(F a, F sign) {
    const F bit = _mm512_set1_ps(-0.0f);
    return _mm512_or_ps(_mm512_andnot_ps(bit, a), _mm512_and_ps(bit, sign));
  }
  static F round(F a) { return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
  static F less(F a, F b, F yes, F no) { return _mm512_mask_mov_ps(no, _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ), yes); }
  static F power(F whole) {
    const __m512i exponent = _mm512_add_epi32(_mm512_cvtps_epi32(whole), _mm512_set1_epi32(127));
    return _mm512_castsi512_ps(_mm512_slli_epi32(exponent, 23));
  }
  static F scaled(F y, F whole, F x) {
    return _mm512_maskz_scalef_ps(_mm512_cmp_ps_mask(x, _mm512_set1_ps(-126), _CMP_NLT_UQ), y, whole);
  }

  static float sum(F a) {
    const __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1));
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
  }
  static float top(F a) {
    const __m256 eight = _mm256_max_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1));
    const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
  }

  [[gnu::always_inline]] static void transpose(F* v) {  // 16 x 16
    F t[16];
#pragma GCC unroll 16
    for (int i = 0; i < 16; i += 2) {
      t[i] = _mm512_unpacklo_ps(v[i], v[i + 1]);
      t[i + 1] = _mm512_unpackhi_ps(v[i], v[i + 1]);
    }
#pragma GCC unroll 16
    for (int i = 0; i < 16; i += 4) {
      v[i] = _mm512_shuffle_ps(t[i], t[i + 2], 0x44), v[i + 1] = _mm512_shuffle_ps(t[i], t[i + 2], 0xee);
      v[i + 2] = _mm512_shuffle_ps(t[i + 1], t[i + 3], 0x44), v[i + 3] = _mm512_shuffle_ps(t[i + 1], t[i + 3], 0xee);
    }
#pragma GCC unroll 16
    for (int i = 0; i < 4; ++i) {
      t[i] = _mm512_shuffle_f32x4(v[i], v[4 + i], 0x88), t[4 + i] = _mm512_shuffle_f32x4(v[i], v[4 + i], 0xdd);
      t[8 + i] = _mm512_shuffle_f32x4(v[8 + i], v[12 + i], 0x88);
      t[12 + i] = _mm512_shuffle_f32x4(v[8 + i], v[12 + i], 0xdd);
    }
#pragma GCC unroll 16
    for (int i = 0; i < 4; ++i) {
      v[i] = _mm512_shuffle_f32x4(t[i], t[8 + i], 0x88), v[8 + i] = _mm512_shuffle_f32x4(t[i], t[8 + i], 0xdd);
      v[4 + i] = _mm512_shuffle_f32x4(t[4 + i], t[12 + i], 0x88);
      v[12 + i] = _mm512_shuffle_f32x4(t[4 + i], t[12 + i], 0xdd);
    }
  }

  using Table = __m512;
  using Nibbles = __m512i;
  static Table table(const float* values) { return _mm512_loadu_ps(values); }
  static Nibbles nibbles(const uint8_t* p) { return _mm512_loadu_si512(p); }
  static F look_up(Table table, Nibbles bits, int i) {  // VPERMPS reads only the low four bits of an index
    return _mm512_permutexvar_ps(i ? _mm512_srli_epi32(bits, unsigned(4 * i)) : bits, table);
  }
};

// Byte dot products for sixteen columns without VNNI: eight columns per register, two sums each.
struct Avx512Dots {
  struct I {
    __m512i low, high;
  };
  static constexpr int ints = 32, registers = 16;

  static I zero() { return {_mm512_setzero_si512(), _mm512_setzero_si512()}; }
  static I load(const int32_t* p) { return {_mm512_loadu_si512(p), _mm512_loadu_si512(p + 16)}; }
  static void store(int32_t* p, I x) { _mm512_storeu_si512(p, x.low), _mm512_storeu_si512(p + 16, x.high); }
  static I bytes(const uint8_t* p) {
    return {_mm512_cvtepu8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))),
            _mm512_cvtepu8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + 32)))};
  }
  static I add(I sum, I w, const int8_t* x) {
    const __m512i four = _mm512_broadcastq_epi64(_mm_cvtepi8_epi16(_mm_loadu_si32(x)));
    return {_mm512_add_epi32(sum.low, _mm512_madd_epi16(w.low, four)),
            _mm512_add_epi32(sum.high, _mm512_madd_epi16(w.high, four))};
  }
  static __m512 total(I sum, int32_t offset) {
    const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    const __m512i all = _mm512_add_epi32(
        _mm512_permutex2var_epi32(sum.low, even, sum.high),
        _mm512_permutex2var_epi32(_mm512_srli_epi64(sum.low, 32), even, _mm512_srli_epi64(sum.high, 32)));
    return _mm512_cvtepi32_ps(_mm512_sub_epi32(all, _mm512_set1_epi32(offset)));
  }
};

}  // namespace easydel::kernels
