// Products of four-bit codes by VDPBF16PS, in the order bf16_pairs. Included by loops_avx512_bf16.cpp only.
#pragma once

#include "easydel/kernels/code_pairs.h"
#include "easydel/kernels/pair_loops.h"
#include "easydel/kernels/quantized_layout.h"

namespace easydel::kernels {

struct CodePairLoops : private CodePairs {
  using V = Avx512;

  static void multiply(const QuantizedStep& step, int64_t panel, int64_t panels, int64_t first, int64_t rows) {
    const __m512i table = table_of(step);
    const int64_t end = panel + panels;
    while (panel < end) {
      const int64_t side_by_side = rows > 4 ? 1 : end - panel >= 4 ? 4 : end - panel >= 2 ? 2 : 1;
      if (rows > 4)
        many(step, table, panel, first, rows);
      else if (side_by_side == 4)
        few<4>(step, table, panel, first, rows);
      else if (side_by_side == 2)
        few<2>(step, table, panel, first, rows);
      else
        few<1>(step, table, panel, first, rows);
      panel += side_by_side;
    }
  }

 private:
  static constexpr int64_t lanes = 16;

  // Up to four rows: as many panels side by side as keep the sums' chains busy. Each is read front to back, and what
  // lies 2 KB ahead is asked for, behind its end that of the panel which comes after these.
  template <int panels>
  static void few(const QuantizedStep& step, __m512i table, int64_t panel, int64_t first, int64_t rows) {
    if (rows == 1) return few_rows<panels, 1>(step, table, panel, first);
    if (rows == 2) return few_rows<panels, 2>(step, table, panel, first);
    if constexpr (panels == 4) {
      few<2>(step, table, panel, first, rows);
      few<2>(step, table, panel + 2, first, rows);
    } else if (rows == 3) {
      few_rows<panels, 3>(step, table, panel, first);
    } else {
      few_rows<panels, 4>(step, table, panel, first);
    }
  }

  template <int panels, int rows>
  static void few_rows(const QuantizedStep& step, __m512i table, int64_t panel, int64_t first) {
    constexpr int64_t ahead = 2048;
    alignas(64) float c[panels][rows * panel_columns] = {};
    const uint32_t* a = step.a_pairs + first * (step.padded_k / 2);
    for (int64_t g = 0; g < step.groups; ++g) {
      const uint8_t* const group = step.group_at(panel, g);
      const int64_t left_of_panel = step.panels + (panel + 1) * step.panel_bytes - group;
      __m512 sum[panels][2][rows];
      for (auto& of_panel : sum)
        for (auto& of_tile : of_panel)
          for (__m512& one : of_tile) one = V::zero();
      for (int64_t k = 0; k < step.length_of(g); k += 8, a += 4 * rows) {
        const int64_t at = scale_bytes + k / k_block * code_block_bytes + k % k_block / 8 * 64;
        const int64_t soon = at + ahead < left_of_panel ? at + ahead : at + ahead + (panels - 1) * step.panel_bytes;
#pragma GCC unroll 4
        for (int p = 0; p < panels; ++p)
#pragma GCC unroll 2
          for (int tile = 0; tile < 2; ++tile) {
            const uint8_t* const of_panel = group + p * step.panel_bytes + tile * code_tile_bytes;
            const __m512i codes = _mm512_loadu_si512(of_panel + at);
            V::prefetch(of_panel + soon);
#pragma GCC unroll 4
            for (int pair = 0; pair < 4; ++pair) {
              const __m512bh w = __m512bh(look_up(table, codes, unsigned(pair)));
#pragma GCC unroll 4
              for (int r = 0; r < rows; ++r)
                sum[p][tile][r] = _mm512_dpbf16_ps(sum[p][tile][r], w, pair_of(a[pair * rows + r]));
            }
          }
      }
#pragma GCC unroll 4
      for (int p = 0; p < panels; ++p)
#pragma GCC unroll 2
        for (int tile = 0; tile < 2; ++tile) {
          const __m512 scale = scales_of(group + p * step.panel_bytes, tile);
#pragma GCC unroll 4
          for (int r = 0; r < rows; ++r) {
            float* const to = c[p] + r * panel_columns + tile * lanes;
            V::store(to, V::fma(sum[p][tile][r], scale, V::load(to)));
          }
        }
    }
    for (int p = 0; p < panels; ++p) ProductLoops<V>::write_rows(step.result, panel + p, first, rows, c[p]);
  }

  // More rows: a piece of the panel is read out, of one group or of several, and each block of rows goes through it.
  static void many(const QuantizedStep& step, __m512i table, int64_t panel, int64_t first, int64_t rows) {
    constexpr int64_t piece = 256;  // k that the first cache holds
    thread_local Scratch<float> sums_of_thread;
    thread_local Scratch<uint32_t> pairs_of_thread;
    float* const c = sums_of_thread.at_least(rows * panel_columns);
    uint32_t* const pairs = pairs_of_thread.at_least(piece / 2 * panel_columns);
    std::memset(c, 0, size_t(rows * panel_columns) * sizeof(float));
    const int64_t together = std::max<int64_t>(1, piece / step.group), block = step.result.block;
    alignas(64) float sums[block_rows * panel_columns];
    PairLoops::Ahead ahead;
    for (int64_t g = 0; g < step.groups; g += together) {
      const int64_t end = std::min(g + together, step.groups);
      const uint8_t* const after = step.group_at(panel, end - 1) + scale_bytes + step.length_of(end - 1) * step.k_bytes;
      ahead.soon({reinterpret_cast<const char*>(after), 1, (after - step.group_at(panel, g)) / 64, 0},
                 divide_up(rows, block) * ((end - 1 - g) * step.group + step.length_of(end - 1)) / (2 * lanes));
      if (end - g > 1 || step.length_of(g) <= piece) {
        uint32_t* to = pairs;
        for (int64_t i = g; i < end; ++i) to = read_out(table, step.group_at(panel, i), 0, step.length_of(i), to);
        for (int64_t r = 0; r < rows; r += block) {
          const uint32_t* b = pairs;
          for (int64_t i = g; i < end; b += step.length_of(i++) / 2 * panel_columns) {
            sum_rows(step, first, rows, r, i, 0, step.length_of(i), b, true, sums, ahead);
            add_scaled(step.group_at(panel, i), std::min(block, rows - r), sums, c + r * panel_columns);
          }
        }
      } else {
        long_group(step, table, panel, g, first, rows, pairs, c, ahead);
      }
    }
    ProductLoops<V>::write_rows(step.result, panel, first, rows, c);
  }

  // A group of more k than a piece has, whose sums wait in memory.
  static void long_group(const QuantizedStep& step, __m512i table, int64_t panel, int64_t g, int64_t first,
                         int64_t rows, uint32_t* pairs, float* c, PairLoops::Ahead& ahead) {
    constexpr int64_t piece = 256;
    thread_local Scratch<float> sums_of_thread;
    float* const sums = sums_of_thread.at_least(rows * panel_columns);
    const int64_t length = step.length_of(g), block = step.result.block;
    for (int64_t k = 0; k < length; k += piece) {
      const int64_t count = std::min(piece, length - k);
      read_out(table, step.group_at(panel, g), k, count, pairs);
      for (int64_t r = 0; r < rows; r += block)
        sum_rows(step, first, rows, r, g, k, count, pairs, k == 0, sums + r * panel_columns, ahead);
    }
    add_scaled(step.group_at(panel, g), rows, sums, c);
  }

  // One block of rows times `count` k of a group, from k on.
  static void sum_rows(const QuantizedStep& step, int64_t first, int64_t rows, int64_t r, int64_t g, int64_t k,
                       int64_t count, const uint32_t* b, bool begin, float* sums, PairLoops::Ahead& ahead) {
    const int64_t block = step.result.block, of_block = std::min(block, rows - r);
    const uint32_t* const a = step.a_pairs + (first + r) * (step.padded_k / 2) + (g * step.group + k) / 2 * of_block;
    ahead.next_rows(a + (r + block < rows ? of_block * (step.padded_k / 2) : 0));
    PairLoops::some_rows(of_block, a, b, count / 2, {sums, begin}, ahead);
  }

  static void add_scaled(const uint8_t* group, int64_t rows, const float* sums, float* c) {
    const __m512 low = scales_of(group, 0), high = scales_of(group, 1);
    for (int64_t i = 0; i < rows * panel_columns; i += 2 * lanes) {
      V::store(c + i, V::fma(V::load(sums + i), low, V::load(c + i)));
      V::store(c + i + lanes, V::fma(V::load(sums + i + lanes), high, V::load(c + i + lanes)));
    }
  }

  static __m512 scales_of(const uint8_t* group, int64_t tile) {
    return V::load(reinterpret_cast<const float*>(group) + tile * lanes);
  }
  static __m512bh pair_of(uint32_t x) { return __m512bh(_mm512_set1_epi32(int(x))); }
};

}  // namespace easydel::kernels
