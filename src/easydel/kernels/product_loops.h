// The inner loops of a product, for a vector type V. Included by loops_<set>.cpp only.
#pragma once

#include <algorithm>
#include <cstring>

#include "easydel/kernels/memory.h"
#include "easydel/kernels/product_layout.h"
#include "easydel/kernels/tiles.h"

namespace easydel::kernels {

template <class V>
struct ProductLoops {
  using F = typename V::F;
  using Tile = Tiles<V>;
  static constexpr int width = V::width;

  static void multiply(const ProductStep& step, int64_t panel, int64_t first, int64_t rows) {
    thread_local Scratch<float> sums_of_thread, gathered_of_thread;
    float* const c = sums_of_thread.at_least(round_up(rows, block_rows) * panel_columns);
    constexpr int64_t piece = 256;
    const int64_t columns = std::min(panel_columns, step.n - panel * panel_columns);
    const int64_t k_step = rows <= block_rows && step.right != RightSide::rows ? step.padded_k : piece;
    float* const gathered =
        step.right == RightSide::rows ? gathered_of_thread.at_least(piece * panel_columns) : nullptr;
    for (int64_t k0 = 0; k0 < step.padded_k; k0 += k_step) {
      const int64_t k = std::min(k_step, step.padded_k - k0);
      const void* b = gathered;
      if (step.right == RightSide::rows)
        gather(step.rows, k0, k, panel * panel_columns, columns, gathered);
      else if (step.right == RightSide::panels_f32)
        b = static_cast<const float*>(step.panels) + (panel * step.padded_k + k0) * panel_columns;
      else
        b = static_cast<const bf16*>(step.panels) + (panel * step.padded_k + k0) * panel_columns;
      for (int64_t r = 0; r < rows; r += block_rows) {
        const int64_t count = std::min(block_rows, rows - r);
        const float* const a = step.a + (first + r) * step.padded_k + k0 * count;
        float* const to = c + r * panel_columns;
        if (step.right != RightSide::panels_bf16)
          Tile::template rows_f32<1, true>(count, a, count,
                                           {static_cast<const float*>(b), panel_columns, panel_columns}, k, to,
                                           panel_columns, k0 == 0);
        else if (step.order == AccumulationOrder::bf16_tile)
          rows_bf16<AccumulationOrder::bf16_tile>(count, a, b, k, to, k0 == 0);
        else if (step.order == AccumulationOrder::bf16_pairs)
          rows_bf16<AccumulationOrder::bf16_pairs>(count, a, b, k, to, k0 == 0);
        else
          rows_bf16<AccumulationOrder::fp32_chain>(count, a, b, k, to, k0 == 0);
      }
    }
    if (step.padded_k == 0) std::memset(c, 0, size_t(rows * panel_columns) * sizeof(float));
    write_rows(step, panel, first, rows, c);
  }

  // Writes accumulators [rows][32] to the result.
  static void write_rows(const ProductStep& step, int64_t panel, int64_t first, int64_t rows, const float* c) {
    const int64_t columns = std::min(panel_columns, step.n - panel * panel_columns);
    for (int64_t r = 0; r < rows; ++r) {
      void* const to = step.y.at(first + r, panel * panel_columns);
      const float* const bias = step.bias ? step.bias + panel * panel_columns : nullptr;
      if (step.non_temporal && columns == panel_columns)
        for (int64_t i = 0; i < panel_columns; i += width)
          V::stream(static_cast<float*>(to) + i, V::load(c + r * panel_columns + i));
      else if (step.y.dtype == DType::f32)
        finish(c + r * panel_columns, bias, step.add, columns, static_cast<float*>(to));
      else
        finish(c + r * panel_columns, bias, step.add, columns, static_cast<bf16*>(to));
    }
  }

  static void pack_rows(Input x, int64_t first, int64_t rows, int64_t k, int64_t padded_k, bool round_to_bf16,
                        float* to) {
    transpose_rows(x, first, rows, k, rows, to);
    std::memset(to + k * rows, 0, size_t((padded_k - k) * rows) * sizeof(float));
    if (!round_to_bf16 || x.dtype == DType::bf16) return;
    int64_t i = 0;
    for (bf16 rounded[width]; i + width <= k * rows; i += width) {
      V::store(rounded, V::load(to + i));
      V::store(to + i, V::load(rounded));
    }
    for (; i < k * rows; ++i) to[i] = widen(narrow(to[i]));
  }

  static void pack_columns(Input x, int64_t first, int64_t columns, int64_t k, float* to) {
    for (int64_t i = 0; i < k; ++i, to += columns)
      for (int64_t c = 0; c < columns; ++c) to[c] = read(x, i, first + c);
  }

  static void pack_panel(Input w, int64_t n, int64_t k, int64_t panel, DType dtype, void* to) {
    const int64_t first = panel * panel_columns, columns = std::min(panel_columns, n - first);
    if (dtype == DType::f32) {
      float* const panel_f32 = static_cast<float*>(to);
      if (columns < panel_columns) std::memset(to, 0, size_t(k * panel_columns) * sizeof(float));
      transpose_rows(w, first, columns, k, panel_columns, panel_f32);
      return;
    }
    // A pair of bf16 moves as one float: a tile is 16 columns of 16 pairs, transposed.
    bf16* tiles = static_cast<bf16*>(to);
    for (int64_t k0 = 0; k0 < k; k0 += k_block)
      for (int64_t tile = 0; tile < panel_columns; tile += tile_columns, tiles += tile_elements) {
        alignas(64) float pairs[tile_columns][tile_columns] = {}, transposed[tile_columns][tile_columns];
        for (int64_t c = 0; c < std::min(tile_columns, columns - tile); ++c)
          copy_bf16(w, first + tile + c, k0, std::min(k_block, k - k0), pairs[c]);
        Tile::transpose([&](int64_t c) { return pairs[c]; }, tile_columns, tile_columns, tile_columns, transposed[0]);
        std::memcpy(tiles, transposed, sizeof transposed);
      }
  }

  // `count` elements of a row, in bf16.
  static void copy_bf16(const Input& x, int64_t row, int64_t column, int64_t count, void* to) {
    const void* const from = x.at(row, column);
    if (x.dtype == DType::bf16) {
      std::memcpy(to, from, size_t(count) * sizeof(bf16));
      return;
    }
    const float* const wide = static_cast<const float*>(from);
    bf16 all[k_block];
    int64_t i = 0;
    for (; i + width <= count; i += width) V::store(all + i, V::load(wide + i));
    for (; i < count; ++i) all[i] = narrow(wide[i]);
    std::memcpy(to, all, size_t(count) * sizeof(bf16));
  }

 private:
  template <AccumulationOrder order>
  static void rows_bf16(int64_t count, const float* a, const void* panel, int64_t k, float* to, bool first) {
    Tile::template rows_bf16<order>(count, a, count, static_cast<const bf16*>(panel), k, to, panel_columns, first,
                                    typename Tile::TheSamePanel());
  }
  static float read(const Input& x, int64_t row, int64_t column) {
    return x.dtype == DType::f32 ? *static_cast<const float*>(x.at(row, column))
                                 : widen(*static_cast<const bf16*>(x.at(row, column)));
  }
  static void write(float* to, float x) { *to = x; }
  static void write(bf16* to, float x) { *to = narrow(x); }

  // A part of a panel from row-major rows [k, n], widened to fp32.
  static void gather(const Input& rows, int64_t k0, int64_t k, int64_t first, int64_t columns, float* to) {
    if (columns < panel_columns) std::memset(to, 0, size_t(k * panel_columns) * sizeof(float));
    for (int64_t i = 0; i < k; ++i, to += panel_columns) {
      if (columns < panel_columns) {
        for (int64_t c = 0; c < columns; ++c) to[c] = read(rows, k0 + i, first + c);
        continue;
      }
      const void* const from = rows.at(k0 + i, first);
      for (int64_t c = 0; c < panel_columns; c += width)
        V::store(to + c, rows.dtype == DType::f32 ? V::load(static_cast<const float*>(from) + c)
                                                  : V::load(static_cast<const bf16*>(from) + c));
    }
  }

  template <class T>
  static void finish(const float* c, const float* bias, bool add, int64_t columns, T* to) {
    int64_t i = 0;
    for (; i + width <= columns; i += width) {
      F y = V::load(c + i);
      if (bias) y = V::add(y, V::load(bias + i));
      if (add) y = V::add(y, V::load(to + i));
      V::store(to + i, y);
    }
    for (; i < columns; ++i) {
      float y = c[i];
      if (bias) y += bias[i];
      if (add) y += widen(to[i]);
      write(to + i, y);
    }
  }

  static void transpose_rows(const Input& x, int64_t first, int64_t rows, int64_t k, int64_t step, float* to) {
    if (x.dtype == DType::f32)
      Tile::transpose([&](int64_t r) { return static_cast<const float*>(x.at(first + r)); }, rows, k, step, to);
    else
      Tile::transpose([&](int64_t r) { return static_cast<const bf16*>(x.at(first + r)); }, rows, k, step, to);
  }
};

}  // namespace easydel::kernels
