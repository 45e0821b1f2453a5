// Dynamic codes by arithmetic, and numbers by registers of tables, instead of gathering them lane by lane. Include only
// where the target is AVX-512 F, BW, VL, DQ (see loops_avx512.cpp).
#pragma once

#include <immintrin.h>

#include "easydel/kernels/dynamic_code_loops.h"
#include "easydel/kernels/simd_avx512.h"

namespace easydel::kernels {

template <>
struct DynamicEncoder<Avx512> {
  static constexpr int64_t count = 16;

  DynamicEncoder(const DynamicCodes& map, float scale)
      : inverse(set(1.0f / scale)),
        first_of_one(set(map.first_of_one)),
        zero(_mm512_set1_epi32(map.zero)),
        ranks{_mm512_loadu_si512(map.nearest_ranks.data()), _mm512_loadu_si512(map.nearest_ranks.data() + 16)},
        near(map.segments[0]),
        middle(map.segments[1]),
        far(map.segments[2]) {}

  void operator()(const float* x, uint8_t* to) const {
    // What is not a number becomes step 0, as in the plain loop. Steps beyond the ends need no other bound.
    __m512 step = _mm512_add_ps(_mm512_mul_ps(_mm512_loadu_ps(x), inverse), set(1.0f));
    step = _mm512_add_ps(_mm512_mul_ps(step, set(32767.5f)), set(0.5f));
    step = _mm512_min_ps(_mm512_max_ps(step, _mm512_setzero_ps()), set(float(DynamicCodes::steps - 1)));
    step = _mm512_roundscale_ps(step, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
    const __m512 way = _mm512_sub_ps(step, set(32767.5f)), size = _mm512_abs_ps(way);

    const __mmask16 is_far = _mm512_cmp_ps_mask(size, far.first, _CMP_GE_OQ),
                    is_near = _mm512_cmp_ps_mask(size, middle.first, _CMP_LT_OQ),
                    is_direct = _mm512_cmp_ps_mask(size, near.first, _CMP_LT_OQ);
    const auto chosen = [&](__m512 Segment::*value) {
      return _mm512_mask_mov_ps(_mm512_mask_mov_ps(middle.*value, is_far, far.*value), is_near, near.*value);
    };
    const __m512 even = _mm512_fmadd_ps(size, chosen(&Segment::slope), chosen(&Segment::offset));
    const __m512i m = _mm512_cvttps_epi32(_mm512_min_ps(size, set(DynamicCodes::direct - 0.5f)));
    const __m512i rank = _mm512_mask_mov_epi32(_mm512_cvttps_epi32(_mm512_min_ps(even, chosen(&Segment::last))),
                                               is_direct, _mm512_permutex2var_epi32(ranks[0], m, ranks[1]));

    const __mmask16 negative = _mm512_movepi32_mask(_mm512_castps_si512(way)),
                    one = _mm512_cmp_ps_mask(way, first_of_one, _CMP_GE_OQ);
    const __m512i below = _mm512_max_epi32(_mm512_sub_epi32(zero, rank), _mm512_setzero_si512());
    __m512i code = _mm512_mask_mov_epi32(_mm512_add_epi32(zero, rank), negative, below);
    code = _mm512_mask_add_epi32(code, one, code, _mm512_set1_epi32(1));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm512_cvtepi32_epi8(code));
  }

 private:
  static __m512 set(float value) { return _mm512_set1_ps(value); }

  struct Segment {
    explicit Segment(const DynamicCodes::Segment& of)
        : first(set(of.first)), slope(set(of.slope)), offset(set(of.offset)), last(set(of.last)) {}
    __m512 first, slope, offset, last;
  };

  __m512 inverse, first_of_one;
  __m512i zero, ranks[2];
  Segment near, middle, far;
};

// The halves of the numbers' bits are looked up for 32 codes, in 64 entries of a table at a time.
template <>
struct DynamicDecoder<Avx512> {
  static constexpr int64_t count = 32;

  DynamicDecoder(const DynamicCodes& map, float by) : scale(_mm512_set1_ps(by)) {
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i)
      low[i] = _mm512_load_si512(map.low.data() + 32 * i), high[i] = _mm512_load_si512(map.high.data() + 32 * i);
  }

  void operator()(const uint8_t* codes, float* to) const {
    // Interleaving halves takes four codes of each 128 bits for the first sixteen numbers, and four for the others.
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(codes));
    const __m512i at = _mm512_cvtepu8_epi16(_mm256_permutevar8x32_epi32(bytes, order));
    const __m512i lows = looked_up(low, at), highs = looked_up(high, at);
    _mm512_storeu_ps(to, _mm512_mul_ps(_mm512_castsi512_ps(_mm512_unpacklo_epi16(lows, highs)), scale));
    _mm512_storeu_ps(to + 16, _mm512_mul_ps(_mm512_castsi512_ps(_mm512_unpackhi_epi16(lows, highs)), scale));
  }

 private:
  [[gnu::always_inline]] static __m512i looked_up(const __m512i (&table)[8], __m512i at) {
    const __mmask32 odd = _mm512_test_epi16_mask(at, _mm512_set1_epi16(64)),
                    upper = _mm512_test_epi16_mask(at, _mm512_set1_epi16(128));
    const auto of = [&](int i) { return _mm512_permutex2var_epi16(table[i], at, table[i + 1]); };
    return _mm512_mask_blend_epi16(upper, _mm512_mask_blend_epi16(odd, of(0), of(2)),
                                   _mm512_mask_blend_epi16(odd, of(4), of(6)));
  }

  __m512 scale;
  __m512i low[8], high[8];
};

}  // namespace easydel::kernels
