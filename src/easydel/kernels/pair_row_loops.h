// Products of few rows with an unpacked weight by VDPBF16PS: y^T = W x^T. The rows of W are read in place, and x is
// packed like a weight. Included by loops_avx512_bf16.cpp only.
#pragma once

#include <immintrin.h>

#include <algorithm>
#include <cstring>

#include "easydel/kernels/pair_loops.h"

namespace easydel::kernels {

struct PairRowLoops {
  using V = Avx512;
  static constexpr int64_t lanes = 16;

  // All rows of `panels` panels of the result. An element has the same sum as in PairLoops.
  static void multiply(const ProductStep& step, int64_t panel, int64_t panels) {
    for (int64_t p = panel; p < panel + panels; ++p) {
      const int64_t next = (p + 1) * panel_columns;
      multiply_panel(step, p,
                     p + 1 == panel + panels
                         ? step.next
                         : lines_of(step.rows, next, std::min(panel_columns, step.n - next), step.k));
    }
  }

 private:
  static int64_t bytes_apart(const ProductStep& step) { return step.rows.stride * int64_t(sizeof(bf16)); }

  // Vectors of sixteen rows of x are processed in twos, or in threes if one would remain, with as many rows of w as fit
  // into the registers.
  static void multiply_panel(const ProductStep& step, int64_t panel, const PrefetchRange& soon) {
    const int64_t of_x = divide_up(step.m, lanes), first = panel * panel_columns;
    const int64_t columns = std::min(panel_columns, step.n - first);
    thread_local Scratch<float> sums_of_thread;
    const int64_t of_panel = panel_columns * panel_columns;
    float* const sums = sums_of_thread.at_least(divide_up(step.m, panel_columns) * of_panel);
    PairLoops::Ahead ahead;
    ahead.soon(soon, std::max<int64_t>(3, of_x * 4 / 3) * (step.k / k_block));
    for (int64_t v = 0; v < of_x;) {
      const int64_t left = of_x - v, vectors = left == 1 || left == 3 ? left : left == 5 ? 3 : 2;
      const int64_t block = divide_up(columns, divide_up(columns, vectors == 3 ? 8 : block_rows));
      for (int64_t r = 0; r < columns; r += block) {
        const int64_t count = std::min(block, columns - r);
        const Rows w{static_cast<const char*>(step.rows.at(first + r)), bytes_apart(step)};
        float* const to = sums + r * panel_columns;
        ahead.next_rows(w.at + 128, w.apart, 64);
        if (vectors == 1) some_rows<1, block_rows>(step, count, w, v, to, ahead);
        if (vectors == 2) some_rows<2, block_rows>(step, count, w, v, to, ahead);
        if (vectors == 3) some_rows<3, 8>(step, count, w, v, to, ahead);
      }
      v += vectors;
    }
    alignas(64) float transposed[of_panel];
    for (int64_t row = 0; row < step.m; row += panel_columns) {
      const int64_t rows = std::min(panel_columns, step.m - row);
      for (int64_t i = 0; i < columns; i += lanes)
        for (int64_t j = 0; j < rows; j += lanes)
          transpose(sums + row * panel_columns + i * panel_columns + j, transposed + j * panel_columns + i);
      ProductLoops<V>::write_rows(step, panel, row, rows, transposed);
    }
  }

  struct Rows {
    const char* at;
    int64_t apart;  // bytes
  };
  // Address of vector v of x.
  static const uint32_t* vector_of(const ProductStep& step, int64_t v) {
    return static_cast<const uint32_t*>(step.panels) + v / 2 * step.padded_k * panel_columns + v % 2 * PairLoops::tile;
  }
  // Accumulators of panels [32 columns][32 rows]: `count` columns and the rows of vectors [v, v + vectors).
  template <int vectors, int64_t rows>
  static void some_rows(const ProductStep& step, int64_t count, Rows w, int64_t v, float* sums,
                        PairLoops::Ahead& ahead) {
    if constexpr (rows > 0) {
      if (count < rows) return some_rows<vectors, rows - 1>(step, count, w, v, sums, ahead);
      const uint32_t* x[vectors];
      for (int i = 0; i < vectors; ++i) x[i] = vector_of(step, v + i);
      __m512 sum[rows][vectors];
#pragma GCC unroll 16
      for (int r = 0; r < rows; ++r)
#pragma GCC unroll 3
        for (int i = 0; i < vectors; ++i) sum[r][i] = V::zero();
      for (int64_t block = 0; block < step.padded_k * panel_columns; block += 2 * PairLoops::tile) {
        ahead(rows);
        for (int64_t pair = block; pair < block + PairLoops::tile; pair += lanes, w.at += sizeof(uint32_t)) {
          __m512bh right[vectors];
#pragma GCC unroll 3
          for (int i = 0; i < vectors; ++i) right[i] = __m512bh(_mm512_load_si512(x[i] + pair));
#pragma GCC unroll 16
          for (int r = 0; r < rows; ++r) {
            int pair_bits;
            std::memcpy(&pair_bits, w.at + r * w.apart, sizeof pair_bits);
            const __m512bh left = __m512bh(_mm512_set1_epi32(pair_bits));
#pragma GCC unroll 3
            for (int i = 0; i < vectors; ++i) sum[r][i] = _mm512_dpbf16_ps(sum[r][i], right[i], left);
          }
        }
      }
#pragma GCC unroll 3
      for (int i = 0; i < vectors; ++i) {
        float* const to = sums + (v + i) / 2 * panel_columns * panel_columns + (v + i) % 2 * lanes;
#pragma GCC unroll 16
        for (int r = 0; r < rows; ++r) V::store(to + r * panel_columns, sum[r][i]);
      }
    }
  }

  // Transposes 16 x 16 out of rows of 32.
  static void transpose(const float* from, float* to) {
    __m512 all[lanes];
#pragma GCC unroll 16
    for (int64_t i = 0; i < lanes; ++i) all[i] = V::load(from + i * panel_columns);
    V::transpose(all);
#pragma GCC unroll 16
    for (int64_t i = 0; i < lanes; ++i) V::store(to + i * panel_columns, all[i]);
  }
};

}  // namespace easydel::kernels
