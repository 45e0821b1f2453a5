// x A^T of an adapter by VDPBF16PS: the rows of x are read where they are. Included by loops_avx512_bf16.cpp only.
#pragma once

#include <immintrin.h>

#include <cstring>

#include "easydel/kernels/low_rank.h"
#include "easydel/kernels/pair_loops.h"
#include "easydel/kernels/wide.h"

namespace easydel::kernels {

struct LowRankPairs {
  using V = Avx512;

  // Rows [first, first + rows) of low = factor * x A^T. An element has the same sum as in PairLoops.
  static void multiply(const LowStep& step, int64_t first, int64_t rows) {
    step.rank <= lanes ? all_rows<1>(step, first, rows) : all_rows<2>(step, first, rows);
  }

 private:
  static constexpr int64_t tile = PairLoops::tile;

  template <int tiles>
  static void all_rows(const LowStep& step, int64_t row, int64_t rows) {
    const int64_t end = row + rows;
    for (; row + 8 <= end; row += 8) some_rows<8, tiles>(step, row);
    if (row + 4 <= end) some_rows<4, tiles>(step, row), row += 4;
    if (row + 2 <= end) some_rows<2, tiles>(step, row), row += 2;
    if (row < end) some_rows<1, tiles>(step, row);
  }

  template <int rows, int tiles>
  static void some_rows(const LowStep& step, int64_t row) {
    const char* x[rows];
    for (int r = 0; r < rows; ++r) x[r] = static_cast<const char*>(step.x.at(step.rows ? step.rows[row + r] : row + r));
    __m512 sum[rows][tiles];
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r)
#pragma GCC unroll 2
      for (int t = 0; t < tiles; ++t) sum[r][t] = V::zero();
    const auto* a = static_cast<const uint32_t*>(step.a);
    for (int64_t block = 0; block < step.k; block += k_block, a += tiles * tile)
      for (int64_t pair = 0; pair < k_block / 2; ++pair) {
        __m512bh of_a[tiles];
#pragma GCC unroll 2
        for (int t = 0; t < tiles; ++t) {
          const uint32_t* const at = a + t * tile + pair * lanes;
          of_a[t] = __m512bh(_mm512_load_si512(at));
          if constexpr (rows <= 4) V::prefetch(at + prefetch_distance_bytes / 4);  // A is read once, from memory
        }
#pragma GCC unroll 8
        for (int r = 0; r < rows; ++r) {
          int pair_bits;
          std::memcpy(&pair_bits, x[r] + 2 * block + 4 * pair, sizeof pair_bits);
          const __m512bh of_x = __m512bh(_mm512_set1_epi32(pair_bits));
#pragma GCC unroll 2
          for (int t = 0; t < tiles; ++t) sum[r][t] = _mm512_dpbf16_ps(sum[r][t], of_a[t], of_x);
        }
      }
    const __m512 factor = V::set1(step.factor);
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r)
#pragma GCC unroll 2
      for (int t = 0; t < tiles; ++t) {
        const auto own = __mmask16((uint64_t(1) << std::min(lanes, step.rank - t * lanes)) - 1);
        _mm512_mask_storeu_ps(step.low + (row + r) * step.rank + t * lanes, own, _mm512_mul_ps(sum[r][t], factor));
      }
  }
};

}  // namespace easydel::kernels
