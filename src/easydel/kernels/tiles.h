// The small products that everything else is cut into: a few rows times 32 columns, sums in registers. Included by
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
  static constexpr int most_rows = V::registers == 32 ? 12 : 6;

  // What is on the right of a product: [k][step], of which `columns` (a multiple of 32) take part.
  struct Right {
    const float* data;
    int64_t step, columns;
  };

  // rows x (vectors x width) sums at c, all of the chain over k. `a` moves by a_step for each k and by row_step for
  // each row; the rows of c lie c_step apart. `streams`: the right side comes from memory, front to back.
  template <int rows, int vectors, int64_t row_step, bool streams>
  static void chain_f32(const float* a, int64_t a_step, const float* b, int64_t b_step, int64_t k, float* c,
                        int64_t c_step, bool first) {
    F sum[rows][vectors];
    load_sums<rows, vectors>(sum, c, c_step, first);
    for (int64_t i = 0; i < k; ++i, a += a_step, b += b_step) {
      F w[vectors];
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) w[v] = V::load(b + v * width);
      if constexpr (streams && rows <= 4) V::prefetch(b + 1024), V::prefetch(b + 1040);
#pragma GCC unroll 12
      for (int r = 0; r < rows; ++r) {
        const F x = V::set1(a[r * row_step]);
#pragma GCC unroll 4
        for (int v = 0; v < vectors; ++v) sum[r][v] = V::fma(x, w[v], sum[r][v]);
      }
    }
    store_sums<rows, vectors>(sum, c, c_step);
  }

  // What is asked for while a panel of bf16 is read: ahead(where it is read, rows, columns) is called for each pair of
  // k.
  struct Nothing {
    void operator()(const bf16*, int, int64_t) const {}
  };
  struct TheSamePanel {  // it comes from memory, front to back
    void operator()(const bf16* pairs, int rows, int64_t) const {
      if (rows <= 4) V::prefetch(pairs + 2048), V::prefetch(pairs + 2048 + tile_elements);
    }
  };

  // The same from a bf16 panel, or one of more columns; k counts whole blocks. `odd_first`: the order of VDPBF16PS.
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

  // The order of TDPBF16PS. The sums of the blocks stay in c, near enough, for lack of registers.
  template <int rows, int vectors>
  static void tile_bf16(const float* a, int64_t a_step, const bf16* b, int64_t k, float* c, bool first) {
    if (first)
      for (int r = 0; r < rows; ++r)
        for (int v = 0; v < vectors; ++v) V::store(c + r * panel_columns + v * width, V::zero());
    for (int64_t block = 0; block < k; block += k_block, b += 2 * tile_elements) {
      F even[rows][vectors], odd[rows][vectors];
      for (int r = 0; r < rows; ++r)
        for (int v = 0; v < vectors; ++v) even[r][v] = odd[r][v] = V::zero();
      for (int64_t j = 0; j < k_block / 2; ++j, a += 2 * a_step) {
        const bf16* const pairs = b + j * 2 * tile_columns;
        F w_even[vectors], w_odd[vectors];
#pragma GCC unroll 4
        for (int v = 0; v < vectors; ++v)
          w_even[v] = V::even(pairs + tile_at(v)), w_odd[v] = V::odd(pairs + tile_at(v));
        if constexpr (rows <= 4) V::prefetch(pairs + 2048), V::prefetch(pairs + 2048 + tile_elements);
        add_column<rows, vectors>(even, a, w_even);
        add_column<rows, vectors>(odd, a + a_step, w_odd);
      }
#pragma GCC unroll 12
      for (int r = 0; r < rows; ++r)
#pragma GCC unroll 4
        for (int v = 0; v < vectors; ++v) {
          float* const at = c + r * panel_columns + v * width;
          V::store(at, V::add(V::load(at), V::add(even[r][v], odd[r][v])));
        }
    }
  }

  // `count` rows times the right side, with as many rows and columns at a time as the registers hold.
  template <int64_t row_step = 1, bool streams = false, int rows = most_rows>
  static void rows_f32(int64_t count, const float* a, int64_t a_step, const Right& b, int64_t k, float* c,
                       int64_t c_step, bool first) {
    if constexpr (rows > 0) {
      if constexpr (rows > 3)
        if (count <= 3) return rows_f32<row_step, streams, 3>(count, a, a_step, b, k, c, c_step, first);
      if (count < rows) return rows_f32<row_step, streams, rows - 1>(count, a, a_step, b, k, c, c_step, first);
      int64_t column = 0;
      if constexpr (3 * rows <= most_rows)  // few chains: more of them at once
        for (; column + 4 * width <= b.columns; column += 4 * width)
          chain_f32<rows, 4, row_step, streams>(a, a_step, b.data + column, b.step, k, c + column, c_step, first);
      for (; column < b.columns; column += 2 * width)
        chain_f32<rows, 2, row_step, streams>(a, a_step, b.data + column, b.step, k, c + column, c_step, first);
      if (count > rows)
        rows_f32<row_step, streams>(count - rows, a + rows * row_step, a_step, b, k, c + rows * c_step, c_step, first);
    }
  }

  // A panel of bf16 on the right, or one of `of` columns, of which `columns` take part, in any order; in the tile
  // instruction's the rows of c lie 32 apart.
  template <Order order, int64_t of = panel_columns, int rows = order == Order::bf16_tile ? 6 : most_rows, class Ahead>
  static void rows_bf16(int64_t count, const float* a, int64_t a_step, const bf16* b, int64_t k, float* c,
                        int64_t c_step, bool first, Ahead&& ahead, int64_t columns = of) {
    if constexpr (rows > 0) {
      if constexpr (rows > 3)
        if (count <= 3) return rows_bf16<order, of, 3>(count, a, a_step, b, k, c, c_step, first, ahead, columns);
      if (count < rows) return rows_bf16<order, of, rows - 1>(count, a, a_step, b, k, c, c_step, first, ahead, columns);
      constexpr bool tiles = order == Order::bf16_tile, odd_first = order == Order::bf16_pairs;
      constexpr int vectors = tiles && V::registers < 32 ? 1 : 2;
      int64_t column = 0;
      if constexpr (!tiles && 3 * rows <= most_rows)  // few chains: more of them at once
        for (; column + 4 * width <= columns; column += 4 * width)
          chain_bf16<rows, 4, odd_first, of>(a, a_step, b + tile_of(column), k, c + column, c_step, first, ahead);
      for (; column < columns; column += vectors * width) {
        if constexpr (tiles)
          tile_bf16<rows, vectors>(a, a_step, b + tile_of(column), k, c + column, first);
        else
          chain_bf16<rows, vectors, odd_first, of>(a, a_step, b + tile_of(column), k, c + column, c_step, first, ahead);
      }
      if (count > rows)
        rows_bf16<order, of>(count - rows, a + rows, a_step, b, k, c + rows * c_step, c_step, first, ahead, columns);
    }
  }

  // to[i * step + r] = row(r)[i]: `rows` rows (at most step) of length k become columns.
  template <class Row>
  static void turn(const Row& row, int64_t rows, int64_t k, int64_t step, float* to) {
    for (int64_t r = 0; r < rows; r += width) {
      const int64_t count = std::min<int64_t>(width, rows - r);
      const int64_t whole = 2 * count <= width ? 0 : k / width * width;  // a few rows are not worth it
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

  // Where column c of a panel begins within a block of k, in bf16.
  static constexpr int64_t tile_of(int64_t c) { return c / tile_columns * tile_elements + c % tile_columns * 2; }

  // Sums of rows that lie c_step apart; `first`: they begin at 0.
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
  template <int rows, int vectors>
  [[gnu::always_inline]] static void add_column(F (&sum)[rows][vectors], const float* x, const F (&w)[vectors]) {
#pragma GCC unroll 12
    for (int r = 0; r < rows; ++r) {
      const F own = V::set1(x[r]);
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) sum[r][v] = V::fma(own, w[v], sum[r][v]);
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
