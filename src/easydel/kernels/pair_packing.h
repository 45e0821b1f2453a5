// Packs the right side of products of pairs and of tiles from bf16: a pair of consecutive k moves as one word. Included
// by loops_<set>.cpp only, where the target is AVX-512.
#pragma once

#include <immintrin.h>

#include <algorithm>

#include "easydel/kernels/product_loops.h"
#include "easydel/kernels/simd_avx512.h"

namespace easydel::kernels {

struct PairPacking {
  static constexpr int64_t lanes = 16;

  // Panels of the right side from row-major rows [k, n], in the layout of a packed weight; a missing k or column is 0.
  static void pack_panels(Input rows, int64_t k, int64_t n, int64_t panel, int64_t panels, int64_t pairs,
                          uint32_t* to) {
    constexpr int64_t prefetch_rows = 8;
    constexpr int64_t tile = tile_elements / 2;  // in pairs
    for (int64_t i = 0; i < pairs; ++i) {
      for (int64_t r = 2 * i + prefetch_rows; r < std::min(2 * i + prefetch_rows + 2, k); ++r)
        for (int64_t p = panel; p < panel + panels; ++p) Avx512::prefetch(rows.at(r, p * panel_columns));
      uint32_t* const to_pair = to + i / lanes * lanes * panel_columns + i % lanes * lanes;
      if (2 * i + 1 < k && n - panel * panel_columns >= panels * panel_columns) {
        for (int64_t p = 0; p < panels; ++p) {
          const __m512i even = _mm512_loadu_si512(rows.at(2 * i, (panel + p) * panel_columns)),
                        odd = _mm512_loadu_si512(rows.at(2 * i + 1, (panel + p) * panel_columns));
          _mm512_store_si512(to_pair + p * pairs * panel_columns, low_pairs(even, odd));
          _mm512_store_si512(to_pair + p * pairs * panel_columns + tile, high_pairs(even, odd));
        }
        continue;
      }
      for (int64_t c = 0; c < panels * panel_columns; c += lanes) {
        const int64_t column = panel * panel_columns + c, left = std::clamp<int64_t>(n - column, 0, lanes);
        const __mmask16 own = __mmask16((1u << left) - 1);
        uint32_t* const block = to + (c / panel_columns * pairs + i / lanes * lanes) * panel_columns;
        _mm512_store_si512(block + c % panel_columns / lanes * tile + i % lanes * lanes,
                           2 * i < k ? together(rows, 2 * i, k, column, own) : _mm512_setzero_si512());
      }
    }
  }

  // Packs a panel of a weight like ProductLoops. The next panel's lines are prefetched in memory order, because the
  // hardware prefetcher does not follow 32 rows at once.
  static void pack_panel(Input w, int64_t n, int64_t k, int64_t panel, DType dtype, void* to) {
    if (dtype != DType::bf16 || w.dtype != DType::bf16)
      return ProductLoops<Avx512>::pack_panel(w, n, k, panel, dtype, to);
    const int64_t first = panel * panel_columns, columns = std::min(panel_columns, n - first);
    const int64_t end = std::min(n, first + 2 * panel_columns);
    bf16* tiles = static_cast<bf16*>(to);
    for (int64_t k0 = 0, row = first + panel_columns, at = 0; k0 < k; k0 += k_block) {
      for (int64_t i = 0; i < panel_columns && row < end; ++i) {
        _mm_prefetch(static_cast<const char*>(w.at(row, at)), _MM_HINT_T1);
        if ((at += k_block) >= k) at = 0, ++row;
      }
      for (int64_t c = 0; c < panel_columns; c += tile_columns, tiles += tile_elements) {
        const __mmask32 own = k - k0 >= k_block ? ~__mmask32(0) : (__mmask32(1) << (k - k0)) - 1;
        __m512 pairs[lanes];
#pragma GCC unroll 16
        for (int64_t r = 0; r < lanes; ++r)
          pairs[r] = _mm512_castsi512_ps(
              _mm512_maskz_loadu_epi16(c + r < columns ? own : 0, w.at(first + std::min(c + r, columns - 1), k0)));
        Avx512::transpose(pairs);
#pragma GCC unroll 16
        for (int64_t j = 0; j < lanes; ++j) Avx512::store_pairs(tiles + j * k_block, pairs[j]);
      }
    }
  }

  // Interleaves sixteen columns of two rows of 32: the first ones, the last ones, or those starting at `column`
  // (columns beyond 32 are arbitrary).
  static __m512i low_pairs(__m512i even, __m512i odd) { return _mm512_permutex2var_epi16(even, low(), odd); }
  static __m512i high_pairs(__m512i even, __m512i odd) { return pairs_from(lanes, even, odd); }
  static __m512i pairs_from(int column, __m512i even, __m512i odd) {
    return _mm512_permutex2var_epi16(even, _mm512_add_epi16(low(), _mm512_set1_epi16(int16_t(column))), odd);
  }

  // Rows i and i + 1 of x (of k rows), interleaved for the sixteen columns starting at `first`.
  static __m512i together(const Input& x, int64_t i, int64_t k, int64_t first, __mmask16 own) {
    const auto row = [&](int64_t r) { return _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(own, x.at(r, first))); };
    if (i + 1 >= k) return row(i);
    return _mm512_or_si512(row(i), _mm512_slli_epi32(row(i + 1), 16));
  }

 private:
  static __m512i low() {
    const __m512i even = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    return _mm512_or_si512(even, _mm512_slli_epi32(_mm512_add_epi32(even, _mm512_set1_epi32(32)), 16));
  }
};

}  // namespace easydel::kernels
