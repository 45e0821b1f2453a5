// Pairs of bf16 multiplied by VDPBF16PS. Include only where the target is that of simd_avx512.h and AVX512-BF16.
#pragma once

#include <cstring>

#include "easydel/kernels/pair_packing.h"
#include "easydel/kernels/simd_avx512.h"

namespace easydel::kernels {

struct Avx512Pairs {  // what FmaPairs<Avx512> computes, by one instruction
  using F = __m512;
  using Left = __m512bh;
  using Right = __m512bh;
  static constexpr int max_rows = 12;
  static constexpr int64_t columns_in_place = 1;

  static Left left(const bf16* pair) {
    int pair_bits;
    std::memcpy(&pair_bits, pair, sizeof pair_bits);
    return Left(_mm512_set1_epi32(pair_bits));
  }
  static Right right(const bf16* pairs) { return Right(_mm512_loadu_si512(pairs)); }
  static F add(F sum, Right b, Left a) { return _mm512_dpbf16_ps(sum, b, a); }
  // 32 codes of two rows.
  static void right_of_codes(const int8_t* even, const int8_t* odd, Right (&to)[2]) {
    for (int i = 0; i < 2; ++i) {  // codes are exact in bf16, so that the low half of each float is zero
      const __m512i low = _mm512_srli_epi32(_mm512_castps_si512(Avx512::load(even + 16 * i)), 16);
      to[i] = Right(_mm512_or_si512(low, _mm512_castps_si512(Avx512::load(odd + 16 * i))));
    }
  }
  static void right_of_codes(const i4_pair* even, const i4_pair* odd, Right (&to)[2]) {
    const __m512i low = _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(even)));
    const __m512i high = _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(odd)));
    const __m512i pairs = _mm512_or_si512(low, _mm512_slli_epi32(high, 16));
    to[0] = Right(Avx512::numbers_of_i4(pairs));
    to[1] = Right(Avx512::numbers_of_i4(_mm512_srli_epi16(pairs, 4)));
  }

  static void right_of_rows(const bf16* even, const bf16* odd, int64_t columns, Right (&to)[2]) {
    const __mmask32 own = columns >= 32 ? ~__mmask32(0) : (__mmask32(1) << columns) - 1;
    const __m512i low = _mm512_maskz_loadu_epi16(own, even), high = _mm512_maskz_loadu_epi16(own, odd);
    to[0] = Right(PairPacking::low_pairs(low, high));
    to[1] = Right(PairPacking::high_pairs(low, high));
  }
  struct Largest {
    __m512i doubled;  // each lane with its sign bit shifted out
    Largest() : doubled(_mm512_setzero_si512()) {}
    bool finite() const { return _mm512_cmpge_epu16_mask(doubled, _mm512_set1_epi16(int16_t(0xff00))) == 0; }
  };
  static void interleave(const bf16* even, const bf16* odd, int64_t columns, bf16* first, bf16* last,
                         Largest& largest) {
    const __mmask32 own = columns >= 32 ? ~__mmask32(0) : (__mmask32(1) << columns) - 1;
    const __m512i low = _mm512_maskz_loadu_epi16(even ? own : 0, even),
                  high = _mm512_maskz_loadu_epi16(odd ? own : 0, odd);
    _mm512_storeu_si512(first, PairPacking::low_pairs(low, high));
    _mm512_storeu_si512(last, PairPacking::high_pairs(low, high));
    largest.doubled =
        _mm512_max_epu16(largest.doubled, _mm512_max_epu16(_mm512_add_epi16(low, low), _mm512_add_epi16(high, high)));
  }
  // Weights are never denormals, which this instruction would flush to zero.
  static void store_weights(bf16* to, F x) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), __m256i(_mm512_cvtneps_pbh(x)));
  }
};

}  // namespace easydel::kernels
