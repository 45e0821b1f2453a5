// The small products that all others are cut into: a few rows x 32 columns, accumulators in registers. Included by
// loops_<set>.cpp only, through others.
#pragma once

#include <algorithm>
#include <cstring>

#include "easydel/kernels/product_layout.h"

namespace easydel::kernels {

template <class V>
struct Tiles {
  using F = typename V::F;
  static constexpr int width = V::width;
  static constexpr int max_rows = V::registers == 32 ? 12 : 6;
  static constexpr int max_tile_rows = max_rows / 2;  // two chains each, of two vectors

  // The right side of a product: [k][step], of which `columns` (a multiple of 32) are multiplied.
  struct Right {
    const float* data;
    int64_t step, columns;
  };

  // rows x (vectors x width) accumulators at c, the whole chain over k. `a` moves by a_step per k and by row_step per
  // row; the rows of c are c_step apart. `streams`: the right side is read once, sequentially, from memory.
  template <int rows, int vectors, int64_t row_step, bool streams>
  static void chain_f32(const float* a, int64_t a_step, const float* b, int64_t b_step, int64_t k, float* c,
                        int64_t c_step, bool first) {
    F sum[rows][vectors];
    load_sums<rows, vectors>(sum, c, c_step, first);
    for (int64_t i = 0; i < k; ++i, a += a_step, b += b_step) {
      F w[vectors];
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) w[v] = V::load(b + v * width);
      if constexpr (streams && rows <= 4)
        V::prefetch(b + prefetch_distance_bytes / 4), V::prefetch(b + prefetch_distance_bytes / 4 + 16);
#pragma GCC unroll 12
      for (int r = 0; r < rows; ++r) {
        const F x = V::set1(a[r * row_step]);
#pragma GCC unroll 4
        for (int v = 0; v < vectors; ++v) sum[r][v] = V::fma(x, w[v], sum[r][v]);
      }
    }
    store_sums<rows, vectors>(sum, c, c_step);
  }

  // How to prefetch while a bf16 panel is read: ahead(address, rows, columns) is called for each pair of k.
  struct Nothing {
    void operator()(const bf16*, int, int64_t) const {}
  };
  struct TheSamePanel {  // it is read sequentially from memory, and prefetched once for all of its columns
    const bf16* soon = nullptr;
    void operator()(const bf16* pairs, int rows, int64_t) {
      if (!soon) soon = pairs + prefetch_distance_bytes / 2;
      if (rows > 4 || soon - pairs > prefetch_distance_bytes / 2 + 2 * tile_elements) return;
      V::prefetch(soon), V::prefetch(soon + k_block);
      soon += 2 * k_block;
    }
  };

  // The same from a bf16 panel, or one with more columns; k counts whole blocks. `odd_first`: the order of VDPBF16PS.
  template <int rows, int vectors, bool odd_first, int64_t columns, class Ahead>
  static void chain_bf16(const float* a, int64_t a_step, const bf16* b, int64_t k, float* c, int64_t c_step, bool first,
                         Ahead& ahead) {
    F sum[rows][vectors];
    load_sums<rows, vectors>(sum, c, c_step, first);
    for (int64_t i = 0; i < k; i += 2, a += 2 * a_step) {
      const bf16* const pairs = b + i / k_block * (columns * k_block) + i % k_block * tile_columns;
      F even[vectors], odd[vectors];
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) even[v] = V::even(pairs + tile_at(v)), odd[v] = V::odd(pairs + tile_at(v));
      ahead(pairs, rows, vectors * width);
      if constexpr (odd_first) add_column<rows, vectors>(sum, a + a_step, odd);
      add_column<rows, vectors>(sum, a, even);
      if constexpr (!odd_first) add_column<rows, vectors>(sum, a + a_step, odd);
    }
    store_sums<rows, vectors>(sum, c, c_step);
  }

  // The order of TDPBF16PS. The blocks' sums stay in c (in L1), because there are too few registers.
  template <int rows, int vectors, int64_t columns, class Ahead>
  static void tile_bf16(const float* a, int64_t a_step, const bf16* b, int64_t k, float* c, int64_t c_step, bool first,
                        Ahead& ahead) {
    for (int64_t block = 0; block < k; block += k_block, b += columns * k_block, first = false) {
      F even[rows][vectors], odd[rows][vectors];
      set_zero(even), set_zero(odd);
      for (int64_t j = 0; j < k_block / 2; ++j, a += 2 * a_step) {
        const bf16* const pairs = b + j * 2 * tile_columns;
        F w_even[vectors], w_odd[vectors];
#pragma GCC unroll 4
        for (int v = 0; v < vectors; ++v)
          w_even[v] = V::even(pairs + tile_at(v)), w_odd[v] = V::odd(pairs + tile_at(v));
        ahead(pairs, rows, vectors * width);
        add_column<rows, vectors>(even, a, w_even);
        add_column<rows, vectors>(odd, a + a_step, w_odd);
      }
      add_block<rows, vectors>(even, odd, c, c_step, first);
    }
  }

  // The same if both sides have bf16 values, the left one stored in 32 bits: k [begin, end) of blocks that begin at
  // multiples of 32. right(i, columns) is the address of k i of this many columns of the right side.
  template <int rows, int vectors, int64_t row_step, class Right>
  static void tile_chains(const float* a, int64_t a_step, const Right& right, int64_t begin, int64_t end, float* c,
                          int64_t c_step, bool first) {
    for (int64_t i = begin; i < end; first = false) {
      const int64_t stop = std::min(end, (i / k_block + 1) * k_block);
      F even[rows][vectors], odd[rows][vectors];
      set_zero(even), set_zero(odd);
      const auto add = [&](F(&sum)[rows][vectors]) __attribute__((always_inline)) {
        const auto* const b = right(i, vectors * width);
        F w[vectors];
#pragma GCC unroll 4
        for (int v = 0; v < vectors; ++v) w[v] = V::load(b + v * width);
        add_column<rows, vectors, row_step>(sum, a + i * a_step, w);
        ++i;
      };
      if (i % 2) add(odd);
      while (i + 1 < stop) add(even), add(odd);
      if (i < stop) add(even);
      add_block<rows, vectors>(even, odd, c, c_step, first);
    }
  }

  // Multiplies `count` rows by the right side, with as many rows and columns at a time as fit into the registers.
  template <int64_t row_step = 1, bool streams = false, int rows = max_rows>
  static void rows_f32(int64_t count, const float* a, int64_t a_step, const Right& b, int64_t k, float* c,
                       int64_t c_step, bool first) {
    if constexpr (rows > 0) {
      if constexpr (rows > 3)
        if (count <= 3) return rows_f32<row_step, streams, 3>(count, a, a_step, b, k, c, c_step, first);
      if (count < rows) return rows_f32<row_step, streams, rows - 1>(count, a, a_step, b, k, c, c_step, first);
      int64_t column = 0;
      if constexpr (3 * rows <= max_rows)  // few chains: process more of them at once
        for (; column + 4 * width <= b.columns; column += 4 * width)
          chain_f32<rows, 4, row_step, streams>(a, a_step, b.data + column, b.step, k, c + column, c_step, first);
      for (; column < b.columns; column += 2 * width)
        chain_f32<rows, 2, row_step, streams>(a, a_step, b.data + column, b.step, k, c + column, c_step, first);
      if (count > rows)
        rows_f32<row_step, streams>(count - rows, a + rows * row_step, a_step, b, k, c + rows * c_step, c_step, first);
    }
  }

  // The right side is a bf16 panel, or one with `of` columns, of which `columns` are multiplied, in any order.
  template <AccumulationOrder order, int64_t of = panel_columns,
            int rows = order == AccumulationOrder::bf16_tile ? 6 : max_rows, class Ahead>
  static void rows_bf16(int64_t count, const float* a, int64_t a_step, const bf16* b, int64_t k, float* c,
                        int64_t c_step, bool first, Ahead&& ahead, int64_t columns = of) {
    if constexpr (rows > 0) {
      if constexpr (rows > 3)
        if (count <= 3) return rows_bf16<order, of, 3>(count, a, a_step, b, k, c, c_step, first, ahead, columns);
      if (count < rows) return rows_bf16<order, of, rows - 1>(count, a, a_step, b, k, c, c_step, first, ahead, columns);
      constexpr bool tiles = order == AccumulationOrder::bf16_tile, odd_first = order == AccumulationOrder::bf16_pairs;
      constexpr int vectors = tiles && rows > max_tile_rows ? 1 : 2;
      int64_t column = 0;
      // few chains: process more of them at once
      if constexpr (tiles ? 2 * rows <= max_tile_rows : 3 * rows <= max_rows)
        for (; column + 4 * width <= columns; column += 4 * width) {
          if constexpr (tiles)
            tile_bf16<rows, 4, of>(a, a_step, b + tile_of(column), k, c + column, c_step, first, ahead);
          else
            chain_bf16<rows, 4, odd_first, of>(a, a_step, b + tile_of(column), k, c + column, c_step, first, ahead);
        }
      for (; column < columns; column += vectors * width) {
        if constexpr (tiles)
          tile_bf16<rows, vectors, of>(a, a_step, b + tile_of(column), k, c + column, c_step, first, ahead);
        else
          chain_bf16<rows, vectors, odd_first, of>(a, a_step, b + tile_of(column), k, c + column, c_step, first, ahead);
      }
      if (count > rows)
        rows_bf16<order, of>(count - rows, a + rows, a_step, b, k, c + rows * c_step, c_step, first, ahead, columns);
    }
  }

  // Multiplies `count` rows by `columns` columns (a multiple of width) of the right side by tile_chains: right(i,
  // column, count).
  template <int64_t row_step = 1, int rows = max_tile_rows, class Right>
  static void rows_tile(int64_t count, const float* a, int64_t a_step, const Right& right, int64_t begin, int64_t end,
                        int64_t columns, float* c, int64_t c_step, bool first) {
    if constexpr (rows > 0) {
      if (count < rows)
        return rows_tile<row_step, rows - 1>(count, a, a_step, right, begin, end, columns, c, c_step, first);
      int64_t column = 0;
      const auto from_column = [&](int64_t i, int64_t some) { return right(i, column, some); };
      if constexpr (2 * rows <= max_tile_rows)
        for (; column + 4 * width <= columns; column += 4 * width)
          tile_chains<rows, 4, row_step>(a, a_step, from_column, begin, end, c + column, c_step, first);
      for (; column + 2 * width <= columns; column += 2 * width)
        tile_chains<rows, 2, row_step>(a, a_step, from_column, begin, end, c + column, c_step, first);
      for (; column < columns; column += width)
        tile_chains<rows, 1, row_step>(a, a_step, from_column, begin, end, c + column, c_step, first);
      if (count > rows)
        rows_tile<row_step>(count - rows, a + rows * row_step, a_step, right, begin, end, columns, c + rows * c_step,
                            c_step, first);
    }
  }

  // to[i * step + r] = row(r)[i]: `rows` rows (at most step) of length k become columns.
  template <class Row>
  static void transpose(const Row& row, int64_t rows, int64_t k, int64_t step, float* to) {
    for (int64_t r = 0; r < rows; r += width) {
      const int64_t count = std::min<int64_t>(width, rows - r);
      const int64_t whole = 2 * count <= width ? 0 : k / width * width;  // not worth it for a few rows
      for (int64_t i = 0; i < whole; i += width) {
        F tile[width];
#pragma GCC unroll 16
        for (int64_t j = 0; j < width; ++j) tile[j] = j < count ? V::load(row(r + j) + i) : V::zero();
        V::transpose(tile);
        for (int64_t j = 0; j < width; ++j) store_some(to + (i + j) * step + r, tile[j], count);
      }
      for (int64_t i = whole; i < k; ++i)
        for (int64_t j = 0; j < count; ++j) to[i * step + r + j] = widen(row(r + j)[i]);
    }
  }

  // Offset of column c of a panel in a block of k, in bf16.
  static constexpr int64_t tile_of(int64_t c) { return c / tile_columns * tile_elements + c % tile_columns * 2; }

  // Accumulators of rows that are c_step apart. `first`: they start from zero.
  template <int rows, int vectors>
  static void load_sums(F (&sum)[rows][vectors], const float* c, int64_t c_step, bool first) {
#pragma GCC unroll 12
    for (int r = 0; r < rows; ++r)
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) sum[r][v] = first ? V::zero() : V::load(c + r * c_step + v * width);
  }
  template <int rows, int vectors>
  static void store_sums(const F (&sum)[rows][vectors], float* c, int64_t c_step) {
#pragma GCC unroll 12
    for (int r = 0; r < rows; ++r)
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) V::store(c + r * c_step + v * width, sum[r][v]);
  }

 private:
  static constexpr int64_t tile_at(int vector) { return tile_of(int64_t(vector) * width); }

  // sum += x [rows] times one k of the right side.
  template <int rows, int vectors, int64_t row_step = 1>
  [[gnu::always_inline]] static void add_column(F (&sum)[rows][vectors], const float* x, const F (&w)[vectors]) {
#pragma GCC unroll 12
    for (int r = 0; r < rows; ++r) {
      const F own = V::set1(x[r * row_step]);
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) sum[r][v] = V::fma(own, w[v], sum[r][v]);
    }
  }

  template <int rows, int vectors>
  [[gnu::always_inline]] static void set_zero(F (&sum)[rows][vectors]) {
#pragma GCC unroll 12
    for (int r = 0; r < rows; ++r)
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) sum[r][v] = V::zero();
  }
  // Adds the two chains of a block to the sums of the blocks before it.
  template <int rows, int vectors>
  [[gnu::always_inline]] static void add_block(const F (&even)[rows][vectors], const F (&odd)[rows][vectors], float* c,
                                               int64_t c_step, bool first) {
#pragma GCC unroll 12
    for (int r = 0; r < rows; ++r)
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) {
        float* const at = c + r * c_step + v * width;
        V::store(at, V::add(first ? V::zero() : V::load(at), V::add(even[r][v], odd[r][v])));
      }
  }

  static void store_some(float* to, F x, int64_t count) {
    if (count == width) return V::store(to, x);
    float all[width];
    V::store(all, x);
    std::memcpy(to, all, size_t(count) * sizeof(float));
  }
};

}  // namespace easydel::kernels
