// Vectors of 8 floats. Include only where the target is AVX2 with FMA and F16C (see loops_avx2.cpp).
#pragma once

#include <immintrin.h>

#include "easydel/kernels/dtype.h"

namespace easydel::kernels {

struct Avx2 {
  using F = __m256;
  static constexpr int width = 8, registers = 16;

  static F zero() { return _mm256_setzero_ps(); }
  static F set1(float x) { return _mm256_set1_ps(x); }
  static F load(const float* p) { return _mm256_loadu_ps(p); }
  static void store(float* p, F x) { _mm256_storeu_ps(p, x); }
  static void store_exact(bf16* p, F x) {
    const __m256i bits = _mm256_srli_epi32(_mm256_castps_si256(x), 16);
    const __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(bits, bits), 0x08);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_castsi256_si128(packed));
  }
  static void store_exact(float* p, F x) { store(p, x); }
  static void store_exact(int8_t* p, F x) {
    const __m256i whole = _mm256_cvtps_epi32(x);
    const __m128i words = _mm_packs_epi32(_mm256_castsi256_si128(whole), _mm256_extracti128_si256(whole, 1));
    _mm_storel_epi64(reinterpret_cast<__m128i*>(p), _mm_packs_epi16(words, words));
  }
  static void stream(float* p, F x) { _mm256_stream_ps(p, x); }
  static F load(const bf16* p) {
    const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
  }
  static F load(const int8_t* p) {
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))));
  }
  static F load(const uint8_t* p) {
    return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))));
  }
  static F load(const e4m3* p) {  // as simd_avx512.h
    const __m128i x = _mm_cvtepi8_epi16(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
    const __m128i half = _mm_and_si128(_mm_slli_epi16(x, 7), _mm_set1_epi16(int16_t(0xbfff)));
    return _mm256_mul_ps(_mm256_cvtph_ps(half), _mm256_set1_ps(0x1p8f));
  }
  static void store(bf16* p, F x) { _mm_storeu_si128(reinterpret_cast<__m128i*>(p), narrowed(x)); }
  static void stream(bf16* p, F x) { _mm_stream_si128(reinterpret_cast<__m128i*>(p), narrowed(x)); }
  static void fence() { _mm_sfence(); }
  static __m128i narrowed(F x) {
    const __m256i rounded = _mm256_srli_epi32(_mm256_castps_si256(Avx2::rounded(x)), 16);
    const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q));
    const __m256i bits = _mm256_blendv_epi8(rounded, _mm256_set1_epi32(0x7fc0), nan);
    const __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(bits, bits), 0x08);
    return _mm256_castsi256_si128(packed);
  }
  static F rounded(F x) {  // to bf16; x is not a NaN
    const __m256i u = _mm256_castps_si256(x), one = _mm256_set1_epi32(1), half = _mm256_set1_epi32(0x7fff);
    const __m256i tie = _mm256_and_si256(_mm256_srli_epi32(u, 16), one);
    const __m256i sum = _mm256_add_epi32(u, _mm256_add_epi32(half, tie));
    return _mm256_castsi256_ps(_mm256_and_si256(sum, _mm256_set1_epi32(int(0xffff0000))));
  }
  static F load_halves(const uint8_t* p) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
  static F rounded_to_half(F x) {
    return _mm256_cvtph_ps(_mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
  }
  static F even(const bf16* pairs) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(pairs)), 16));
  }
  static F odd(const bf16* pairs) {
    const __m256i high = _mm256_set1_epi32(int(0xffff0000));
    return _mm256_castsi256_ps(_mm256_and_si256(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(pairs)), high));
  }
  static F load_pairs(const bf16* p) {  // bits are only moved
    return _mm256_castsi256_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  }
  static void store_pairs(bf16* p, F x) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm256_castps_si256(x)); }
  static void prefetch(const void* p) { _mm_prefetch(static_cast<const char*>(p), _MM_HINT_T0); }

  static F alternate(F even, F odd) { return _mm256_blend_ps(even, odd, 0xaa); }  // lanes of each in turn
  static F add(F a, F b) { return _mm256_add_ps(a, b); }
  static F sub(F a, F b) { return _mm256_sub_ps(a, b); }
  static F mul(F a, F b) { return _mm256_mul_ps(a, b); }
  static F div(F a, F b) { return _mm256_div_ps(a, b); }
  static F sqrt(F a) { return _mm256_sqrt_ps(a); }
  static F fma(F a, F b, F c) { return _mm256_fmadd_ps(a, b, c); }
  static F max(F a, F b) { return _mm256_max_ps(a, b); }
  static F min(F a, F b) { return _mm256_min_ps(a, b); }
  static F abs(F a) { return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), a); }
  static F copy_sign(F a, F sign) {
    const F bit = _mm256_set1_ps(-0.0f);
    return _mm256_or_ps(_mm256_andnot_ps(bit, a), _mm256_and_ps(bit, sign));
  }
  static F round(F a) { return _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
  static F less(F a, F b, F yes, F no) { return _mm256_blendv_ps(no, yes, _mm256_cmp_ps(a, b, _CMP_LT_OQ)); }
  static F power(F whole) {
    const __m256i exponent = _mm256_add_epi32(_mm256_cvtps_epi32(whole), _mm256_set1_epi32(127));
    return _mm256_castsi256_ps(_mm256_slli_epi32(exponent, 23));
  }
  static F scaled(F y, F whole, F x) { return less(x, set1(-126), zero(), mul(y, power(max(set1(-126), whole)))); }

  static float sum(F a) {
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
  }
  static float top(F a) {
    const __m128 four = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
  }

  [[gnu::always_inline]] static void transpose(F* v) {  // 8 x 8
    F t[8];
#pragma GCC unroll 8
    for (int i = 0; i < 8; i += 2) {
      t[i] = _mm256_unpacklo_ps(v[i], v[i + 1]);
      t[i + 1] = _mm256_unpackhi_ps(v[i], v[i + 1]);
    }
#pragma GCC unroll 8
    for (int i = 0; i < 8; i += 4) {
      v[i] = _mm256_shuffle_ps(t[i], t[i + 2], 0x44), v[i + 1] = _mm256_shuffle_ps(t[i], t[i + 2], 0xee);
      v[i + 2] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0x44), v[i + 3] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0xee);
    }
#pragma GCC unroll 8
    for (int i = 0; i < 4; ++i) {
      t[i] = _mm256_permute2f128_ps(v[i], v[i + 4], 0x20);
      t[i + 4] = _mm256_permute2f128_ps(v[i], v[i + 4], 0x31);
    }
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) v[i] = t[i];
  }

  struct Table {
    __m256 low, high;
  };
  using Nibbles = __m256i;
  static Table table(const float* values) { return {_mm256_loadu_ps(values), _mm256_loadu_ps(values + 8)}; }
  static Nibbles nibbles(const uint8_t* p) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)); }
  static F look_up(Table table, Nibbles bits, int i) {
    const __m256i code = _mm256_srli_epi32(bits, 4 * i);
    return _mm256_blendv_ps(_mm256_permutevar8x32_ps(table.low, code), _mm256_permutevar8x32_ps(table.high, code),
                            _mm256_castsi256_ps(_mm256_slli_epi32(code, 28)));
  }
};

// Byte dot products for eight columns, two sums each, because VPMADDUBSW would saturate.
struct Avx2Dots {
  struct I {
    __m256i low, high;
  };
  static constexpr int ints = 16, registers = 16;

  static I zero() { return {_mm256_setzero_si256(), _mm256_setzero_si256()}; }
  static I load(const int32_t* p) {
    return {_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)),
            _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + 8))};
  }
  static void store(int32_t* p, I x) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), x.low);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p + 8), x.high);
  }
  static I bytes(const uint8_t* p) {
    return {_mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))),
            _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p + 16)))};
  }
  static I add(I sum, I w, const int8_t* x) {
    const __m256i four = _mm256_broadcastq_epi64(_mm_cvtepi8_epi16(_mm_loadu_si32(x)));
    return {_mm256_add_epi32(sum.low, _mm256_madd_epi16(w.low, four)),
            _mm256_add_epi32(sum.high, _mm256_madd_epi16(w.high, four))};
  }
  static __m256 total(I sum, int32_t offset) {
    const __m256i all = _mm256_permute4x64_epi64(_mm256_hadd_epi32(sum.low, sum.high), 0xd8);
    return _mm256_cvtepi32_ps(_mm256_sub_epi32(all, _mm256_set1_epi32(offset)));
  }
};

}  // namespace easydel::kernels
