// Products of four-bit codes by VDPBF16PS, in the order bf16_pairs. Included by loops_avx512_bf16.cpp only.
#pragma once

#include <type_traits>

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
      if (rows > 4) {
        many(step, table, panel++, first, rows);
      } else if (step.groups > 2) {
        few(rows, [&]<int count>(Count<count>) { by_groups<count>(step, table, panel, first); });
        ++panel;
      } else {
        const int64_t panel_count = end - panel >= 4 && rows <= 2 ? 4 : end - panel >= 2 ? 2 : 1;
        few(rows, [&]<int count>(Count<count>) {
          if constexpr (count <= 2)
            if (panel_count == 4) by_panels<4, count>(step, table, panel, first);
          if (panel_count == 2) by_panels<2, count>(step, table, panel, first);
          if (panel_count == 1) by_panels<1, count>(step, table, panel, first);
        });
        panel += panel_count;
      }
    }
  }

 private:
  static constexpr int64_t lanes = 16;
  template <int count>
  using Count = std::integral_constant<int, count>;

  // Up to four rows, from the codes to accumulators in registers.
  template <class Rows>
  static void few(int64_t rows, const Rows& of_rows) {
    if (rows == 1) of_rows(Count<1>());
    if (rows == 2) of_rows(Count<2>());
    if (rows == 3) of_rows(Count<3>());
    if (rows == 4) of_rows(Count<4>());
  }

  // As many groups of a panel at a time as keep the accumulator chains busy, in equal portions.
  template <int rows>
  static void by_groups(const QuantizedStep& step, __m512i table, int64_t panel, int64_t first) {
    constexpr int64_t max_groups = rows > 2 ? 2 : 4;
    alignas(64) float c[rows * panel_columns] = {};
    const int64_t whole = step.length_of(step.groups - 1) == step.group ? step.groups : step.groups - 1;
    for (int64_t g = 0; g < step.groups;) {
      const int64_t left = whole - g, group_count = left > 0 ? divide_up(left, divide_up(left, max_groups)) : 1;
      Units units{.codes = step.group_at(panel, g),
                  .apart = step.head_bytes + step.group * step.k_bytes,
                  .a = step.a_pairs + (first * step.padded_k + g * step.group * rows) / 2,
                  .a_apart = step.group / 2 * rows,
                  .length = step.length_of(g),
                  .c = c,
                  .first = first,
                  .g = g,
                  .g_apart = 1};
      units.soon = units.codes + prefetch_distance_bytes;
      if constexpr (max_groups == 4) {
        if (group_count == 4) sum<4, rows>(step, units, table);
        if (group_count == 3) sum<3, rows>(step, units, table);
      }
      if (group_count == 2) sum<2, rows>(step, units, table);
      if (group_count == 1) sum<1, rows>(step, units, table);
      g += group_count;
    }
    ProductLoops<V>::write_rows(step.result, panel, first, rows, c);
  }

  // Panels of one group, or of two adjacent groups.
  template <int panels, int rows>
  static void by_panels(const QuantizedStep& step, __m512i table, int64_t panel, int64_t first) {
    alignas(64) float c[panels * rows * panel_columns] = {};
    for (int64_t g = 0; g < step.groups; ++g)
      sum<panels, rows>(step,
                        {.codes = step.group_at(panel, g),
                         .apart = step.panel_bytes,
                         .a = step.a_pairs + (first * step.padded_k + g * step.group * rows) / 2,
                         .length = step.length_of(g),
                         .c = c,
                         .c_apart = rows * panel_columns,
                         .first = first,
                         .g = g},
                        table);
    for (int p = 0; p < panels; ++p)
      ProductLoops<V>::write_rows(step.result, panel + p, first, rows, c + p * rows * panel_columns);
  }

  // Adjacent groups of equal length: their codes are `apart` bytes from each other, their left sides `a_apart` pairs,
  // their results `c_apart`, their numbers from g on `g_apart`. Rows count from `first` on. The data at `soon` are
  // prefetched meanwhile; null: those 2 KB after each.
  struct Units {
    const uint8_t* codes;
    int64_t apart;
    const uint32_t* a;
    int64_t a_apart = 0, length;
    float* c;
    int64_t c_apart = 0;
    int64_t first = 0, g = 0, g_apart = 0;
    const uint8_t* soon = nullptr;
  };
  template <int count, int rows>
  static void sum(const QuantizedStep& step, Units units, __m512i table) {
    __m512 sums[count][2][rows];
    for (auto& of_unit : sums)
      for (auto& of_tile : of_unit)
        for (__m512& one : of_tile) one = V::zero();
    const int64_t bytes = step.head_bytes + units.length * panel_columns / 2;
    const int64_t lines = divide_up(count * bytes / 64 * 8, units.length);  // per eight k
    for (int64_t k = 0; k < units.length; k += 8, units.a += 4 * rows) {
      const int64_t at = step.head_bytes + k / k_block * code_block_bytes + k % k_block / 8 * 64;
      for (int64_t line = 0; units.soon && line < lines; ++line, units.soon += 64) V::prefetch(units.soon);
#pragma GCC unroll 4
      for (int u = 0; u < count; ++u)
#pragma GCC unroll 2
        for (int tile = 0; tile < 2; ++tile) {
          const uint8_t* const from = units.codes + u * units.apart + tile * code_tile_bytes + at;
          const __m512i codes = _mm512_loadu_si512(from);
          if (!units.soon) V::prefetch(from + 2048);
#pragma GCC unroll 4
          for (int pair = 0; pair < 4; ++pair) {
            const __m512bh w = __m512bh(look_up(table, codes, unsigned(pair)));
#pragma GCC unroll 4
            for (int r = 0; r < rows; ++r)
              sums[u][tile][r] =
                  _mm512_dpbf16_ps(sums[u][tile][r], w, pair_of(units.a[u * units.a_apart + pair * rows + r]));
          }
        }
    }
#pragma GCC unroll 4
    for (int u = 0; u < count; ++u)
#pragma GCC unroll 2
      for (int tile = 0; tile < 2; ++tile) {
        const GroupOfColumns<V> group(step, units.codes + u * units.apart, tile * lanes);
#pragma GCC unroll 4
        for (int r = 0; r < rows; ++r) {
          float* const to = units.c + u * units.c_apart + r * panel_columns + tile * lanes;
          V::store(to, group.add(step, units.first + r, units.g + u * units.g_apart, sums[u][tile][r], V::load(to)));
        }
      }
  }

  // More rows: a chunk of the panel is decoded, of one group or several, and every block of rows is multiplied by it.
  static void many(const QuantizedStep& step, __m512i table, int64_t panel, int64_t first, int64_t rows) {
    constexpr int64_t piece = 256;  // k per chunk that L1 holds
    thread_local Scratch<float> sums_of_thread;
    thread_local Scratch<uint32_t> pairs_of_thread;
    float* const c = sums_of_thread.at_least(rows * panel_columns);
    uint32_t* const pairs = pairs_of_thread.at_least(piece / 2 * panel_columns);
    std::memset(c, 0, size_t(rows * panel_columns) * sizeof(float));
    const int64_t groups_per_piece = std::max<int64_t>(1, piece / step.group), block = step.result.rows_per_block;
    alignas(64) float sums[block_rows * panel_columns];
    PairLoops::Ahead ahead;
    for (int64_t g = 0; g < step.groups; g += groups_per_piece) {
      const int64_t end = std::min(g + groups_per_piece, step.groups);
      const uint8_t* const after = step.codes_at(panel, end - 1) + step.length_of(end - 1) * step.k_bytes;
      ahead.soon({reinterpret_cast<const char*>(after), 1, (after - step.group_at(panel, g)) / 64, 0},
                 divide_up(rows, block) * ((end - 1 - g) * step.group + step.length_of(end - 1)) / (2 * lanes));
      if (end - g > 1 || step.length_of(g) <= piece) {
        uint32_t* to = pairs;
        for (int64_t i = g; i < end; ++i) to = read_out(table, step.codes_at(panel, i), 0, step.length_of(i), to);
        for (int64_t r = 0; r < rows; r += block) {
          const uint32_t* b = pairs;
          for (int64_t i = g; i < end; b += step.length_of(i++) / 2 * panel_columns) {
            sum_rows(step, first, rows, r, i, 0, step.length_of(i), b, true, sums, ahead);
            add_scaled(step, panel, i, first + r, std::min(block, rows - r), sums, c + r * panel_columns);
          }
        }
      } else {
        long_group(step, table, panel, g, first, rows, pairs, c, ahead);
      }
    }
    ProductLoops<V>::write_rows(step.result, panel, first, rows, c);
  }

  // A group with more k than a chunk; its accumulators wait in memory.
  static void long_group(const QuantizedStep& step, __m512i table, int64_t panel, int64_t g, int64_t first,
                         int64_t rows, uint32_t* pairs, float* c, PairLoops::Ahead& ahead) {
    constexpr int64_t piece = 256;
    thread_local Scratch<float> sums_of_thread;
    float* const sums = sums_of_thread.at_least(rows * panel_columns);
    const int64_t length = step.length_of(g), block = step.result.rows_per_block;
    for (int64_t k = 0; k < length; k += piece) {
      const int64_t count = std::min(piece, length - k);
      read_out(table, step.codes_at(panel, g), k, count, pairs);
      for (int64_t r = 0; r < rows; r += block)
        sum_rows(step, first, rows, r, g, k, count, pairs, k == 0, sums + r * panel_columns, ahead);
    }
    add_scaled(step, panel, g, first, rows, sums, c);
  }

  // One block of rows times `count` k of a group, starting at k.
  static void sum_rows(const QuantizedStep& step, int64_t first, int64_t rows, int64_t r, int64_t g, int64_t k,
                       int64_t count, const uint32_t* b, bool begin, float* sums, PairLoops::Ahead& ahead) {
    const int64_t block = step.result.rows_per_block, of_block = std::min(block, rows - r);
    const uint32_t* const a = step.a_pairs + (first + r) * (step.padded_k / 2) + (g * step.group + k) / 2 * of_block;
    ahead.next_rows(a + (r + block < rows ? of_block * (step.padded_k / 2) : 0));
    PairLoops::some_rows(of_block, a, b, count / 2, {sums, begin}, ahead);
  }

  // Adds group g of rows from `first` on.
  static void add_scaled(const QuantizedStep& step, int64_t panel, int64_t g, int64_t first, int64_t rows,
                         const float* sums, float* c) {
    const uint8_t* const at = step.group_at(panel, g);
    const GroupOfColumns<V> low(step, at, 0), high(step, at, lanes);
    for (int64_t r = 0, i = 0; r < rows; ++r, i += panel_columns) {
      V::store(c + i, low.add(step, first + r, g, V::load(sums + i), V::load(c + i)));
      V::store(c + i + lanes, high.add(step, first + r, g, V::load(sums + i + lanes), V::load(c + i + lanes)));
    }
  }

  static __m512bh pair_of(uint32_t x) { return __m512bh(_mm512_set1_epi32(int(x))); }
};

}  // namespace easydel::kernels
