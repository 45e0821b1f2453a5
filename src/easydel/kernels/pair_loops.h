// Products of bf16 by VDPBF16PS, where it is worth more than FMAs: the order bf16_pairs of a packed weight, and
// gradients, which take two neighbouring rows of the right side at a time. Included by loops_avx512_bf16.cpp only.
#pragma once

#include <immintrin.h>

#include <algorithm>
#include <cstring>

#include "easydel/kernels/product_loops.h"
#include "easydel/kernels/simd_avx512.h"

namespace easydel::kernels {

struct PairLoops {
  using V = Avx512;

  // Rows of x, rounded, as [pair of k][rows], and of its transpose; a missing k is 0.
  static void pack_rows(Input x, int64_t first, int64_t rows, int64_t k, int64_t pairs_in_all, uint32_t* to) {
    const bf16* row[block_rows];
    thread_local Scratch<bf16> rounded_of_thread;
    bf16* rounded = x.number == Number::f32 ? rounded_of_thread.at_least(rows * k) : nullptr;
    for (int64_t r = 0; r < rows; ++r) {
      row[r] = static_cast<const bf16*>(x.at(first + r));
      if (!rounded) continue;
      row[r] = rounded;
      for (int64_t i = 0; i < k; i += k_block)
        ProductLoops<V>::copy_bf16(x, first + r, i, std::min(k_block, k - i), rounded + i);
      rounded += k;
    }
    const __mmask16 own = __mmask16((1u << rows) - 1);
    int64_t i = 0;
    for (; i + 2 * lanes <= k; i += 2 * lanes) {
      __m512 pairs[lanes];
#pragma GCC unroll 16
      for (int64_t r = 0; r < lanes; ++r) pairs[r] = r < rows ? V::load_pairs(row[r] + i) : V::zero();
      V::transpose(pairs);
#pragma GCC unroll 16
      for (int64_t j = 0; j < lanes; ++j)
        _mm512_mask_storeu_epi32(to + (i / 2 + j) * rows, own, _mm512_castps_si512(pairs[j]));
    }
    for (; i < k; i += 2)
      for (int64_t r = 0; r < rows; ++r)
        to[i / 2 * rows + r] = uint32_t(row[r][i].bits) | (i + 1 < k ? uint32_t(row[r][i + 1].bits) << 16 : 0);
    std::memset(to + i / 2 * rows, 0, size_t((pairs_in_all - i / 2) * rows) * sizeof(uint32_t));
  }
  // Several blocks, each behind the one before: a row's lines are read once for all of them.
  static void pack_columns(Input x, int64_t first, int64_t columns, int64_t k, int64_t pairs, uint32_t* to) {
    constexpr int64_t ahead = 8;  // rows
    for (int64_t i = 0; i < k; i += 2) {
      for (int64_t r = i + ahead; r < std::min(i + ahead + 2, k); ++r)
        for (int64_t c = 0; c < columns; c += line) V::prefetch(x.at(r, first + c));
      for (int64_t c = 0; c < columns; c += block_rows) {
        const int64_t count = std::min(block_rows, columns - c);
        const __mmask16 own = __mmask16((1u << count) - 1);
        _mm512_mask_storeu_epi32(to + c * pairs + i / 2 * count, own, together(x, i, k, first + c, own));
      }
    }
    for (int64_t c = 0, done = divide_up(k, 2); c < columns; c += block_rows) {
      const int64_t count = std::min(block_rows, columns - c);
      std::memset(to + c * pairs + done * count, 0, size_t((pairs - done) * count) * sizeof(uint32_t));
    }
  }
  // Panels of the right side from row-major rows [k, n], as a packed weight has them; a missing k or column is 0.
  static void pack_panels(Input rows, int64_t k, int64_t n, int64_t panel, int64_t panels, int64_t pairs,
                          uint32_t* to) {
    constexpr int64_t ahead = 8;  // rows
    for (int64_t i = 0; i < pairs; ++i) {
      for (int64_t r = 2 * i + ahead; r < std::min(2 * i + ahead + 2, k); ++r)
        for (int64_t p = panel; p < panel + panels; ++p) V::prefetch(rows.at(r, p * panel_columns));
      for (int64_t c = 0; c < panels * panel_columns; c += lanes) {
        const int64_t column = panel * panel_columns + c, left = std::clamp<int64_t>(n - column, 0, lanes);
        const __mmask16 own = __mmask16((1u << left) - 1);
        uint32_t* const block = to + (c / panel_columns * pairs + i / lanes * lanes) * panel_columns;
        _mm512_store_si512(block + c % panel_columns / lanes * tile + i % lanes * lanes,
                           2 * i < k ? together(rows, 2 * i, k, column, own) : _mm512_setzero_si512());
      }
    }
  }

  // Floating point operations of `rounds` of as many chains as hide the instruction's latency.
  static double peak(int64_t rounds, float* keep) {
    constexpr int chains = 24;
    __m512 sums[chains];
    for (int i = 0; i < chains; ++i) sums[i] = _mm512_set1_ps(float(i));
    const __m512bh a = __m512bh(_mm512_castps_si512(_mm512_set1_ps(keep[1]))),
                   b = __m512bh(_mm512_castps_si512(_mm512_set1_ps(keep[2])));
    for (int64_t r = 0; r < rounds; ++r)
#pragma GCC unroll 24
      for (int i = 0; i < chains; ++i) sums[i] = _mm512_dpbf16_ps(sums[i], a, b);
    for (int i = 1; i < chains; ++i) sums[0] = V::add(sums[0], sums[i]);
    keep[0] = V::sum(sums[0]);
    return 2.0 * chains * 2 * lanes * double(rounds);
  }

  // near_pairs of the left side stay in the second cache while all panels go by, 128 of a panel's in the first while
  // all rows do. Few rows read each panel front to back.
  static void multiply(const ProductStep& step, int64_t panel, int64_t panels, int64_t first, int64_t rows) {
    const bool few = rows <= block_rows;
    const int64_t all = step.padded_k, stretch = few ? all : near_pairs, piece = few ? all : 128;
    const int64_t of_panel = round_up(rows, block_rows) * panel_columns, kept = all > stretch ? of_panel : 0;
    thread_local Scratch<float> sums_of_thread;
    float* const sums = sums_of_thread.at_least(kept > 0 ? panels * kept : of_panel);
    const uint32_t* const right = static_cast<const uint32_t*>(step.panels) + panel * all * panel_columns;
    int64_t begin = 0;
    do {
      const int64_t end = std::min(begin + stretch, all);
      for (int64_t p = 0; p < panels; ++p) {
        float* const c = sums + p * kept;
        for (int64_t pair = begin; pair < end; pair += piece) {
          const int64_t pairs = std::min(piece, end - pair);
          for (int64_t r = 0; r < rows; r += block_rows) {
            const int64_t count = std::min(block_rows, rows - r);
            const uint32_t* const a = step.a_pairs + (first + r) * all + pair * count;
            some_rows(count, a, right + (p * all + pair) * panel_columns, pairs, c + r * panel_columns, pair == 0);
          }
        }
        if (all == 0) std::memset(c, 0, size_t(of_panel) * sizeof(float));
        if (end == all) ProductLoops<V>::write_rows(step, panel + p, first, rows, c);
      }
      begin = end;
    } while (begin < all);
  }

 private:
  static constexpr int64_t lanes = 16, line = 32;     // of bf16
  static constexpr int64_t tile = tile_elements / 2;  // in pairs

  // Rows i and i + 1 of x, side by side in each column from `first` on.
  static __m512i together(const Input& x, int64_t i, int64_t k, int64_t first, __mmask16 own) {
    const auto row = [&](int64_t r) { return _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(own, x.at(r, first))); };
    if (i + 1 >= k) return row(i);
    return _mm512_or_si512(row(i), _mm512_slli_epi32(row(i + 1), 16));
  }

  template <int rows = int(block_rows)>
  static void some_rows(int64_t count, const uint32_t* a, const uint32_t* b, int64_t pairs, float* c, bool first) {
    if constexpr (rows > 0) {
      if (count < rows) return some_rows<rows - 1>(count, a, b, pairs, c, first);
      __m512 sum[rows][2];
#pragma GCC unroll 12
      for (int r = 0; r < rows; ++r)
#pragma GCC unroll 2
        for (int v = 0; v < 2; ++v) sum[r][v] = first ? V::zero() : V::load(c + r * panel_columns + v * lanes);
      for (int64_t block = 0; block < pairs; block += lanes, b += tile)
        for (int64_t i = block; i < std::min(block + lanes, pairs); ++i, a += rows, b += lanes) {
          const __m512bh low = __m512bh(_mm512_load_si512(b)), high = __m512bh(_mm512_load_si512(b + tile));
          if constexpr (rows <= 4) V::prefetch(b + 1024), V::prefetch(b + 1024 + tile);  // it streams from memory
#pragma GCC unroll 12
          for (int r = 0; r < rows; ++r) {
            const __m512bh x = __m512bh(_mm512_set1_epi32(int(a[r])));
            sum[r][0] = _mm512_dpbf16_ps(sum[r][0], low, x);
            sum[r][1] = _mm512_dpbf16_ps(sum[r][1], high, x);
          }
        }
#pragma GCC unroll 12
      for (int r = 0; r < rows; ++r)
#pragma GCC unroll 2
        for (int v = 0; v < 2; ++v) V::store(c + r * panel_columns + v * lanes, sum[r][v]);
    }
  }
};

}  // namespace easydel::kernels
