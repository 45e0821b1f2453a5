// The inner loops of a product, for a vector type V. Included by loops_<set>.cpp only.
#pragma once

#include <algorithm>
#include <cstring>

#include "easydel/kernels/memory.h"
#include "easydel/kernels/product_layout.h"

namespace easydel::kernels {

template <class V>
struct ProductLoops {
  using F = typename V::F;
  static constexpr int width = V::width;
  static constexpr int most_rows = V::registers == 32 ? 12 : 6;

  // rows x (vectors x width) sums at c (32 apart), all of the chain over k. `a` moves by a_step for each k.
  template <int rows, int vectors>
  static void chain_f32(const float* a, int64_t a_step, const float* b, int64_t k, float* c, bool first) {
    F sum[rows][vectors];
    load_sums<rows, vectors>(sum, c, first);
    for (int64_t i = 0; i < k; ++i, a += a_step, b += panel_columns) {
      F w[vectors];
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) w[v] = V::load(b + v * width);
      if constexpr (rows <= 4) V::prefetch(b + 1024), V::prefetch(b + 1040);
#pragma GCC unroll 12
      for (int r = 0; r < rows; ++r) {
        const F x = V::set1(a[r]);
#pragma GCC unroll 4
        for (int v = 0; v < vectors; ++v) sum[r][v] = V::fma(x, w[v], sum[r][v]);
      }
    }
    store_sums<rows, vectors>(sum, c);
  }

  // The same from a bf16 panel; k counts whole blocks.
  template <int rows, int vectors>
  static void chain_bf16(const float* a, int64_t a_step, const bf16* b, int64_t k, float* c, bool first) {
    F sum[rows][vectors];
    load_sums<rows, vectors>(sum, c, first);
    for (int64_t i = 0; i < k; i += 2, a += 2 * a_step) {
      const bf16* const pairs = b + i / k_block * 2 * tile_elements + i % k_block * tile_columns;
      F even[vectors], odd[vectors];
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) even[v] = V::even(pairs + tile_at(v)), odd[v] = V::odd(pairs + tile_at(v));
      if constexpr (rows <= 4) V::prefetch(pairs + 2048), V::prefetch(pairs + 2048 + tile_elements);
#pragma GCC unroll 12
      for (int r = 0; r < rows; ++r) {
        const F x = V::set1(a[r]);
#pragma GCC unroll 4
        for (int v = 0; v < vectors; ++v) sum[r][v] = V::fma(x, even[v], sum[r][v]);
      }
#pragma GCC unroll 12
      for (int r = 0; r < rows; ++r) {
        const F x = V::set1(a[a_step + r]);
#pragma GCC unroll 4
        for (int v = 0; v < vectors; ++v) sum[r][v] = V::fma(x, odd[v], sum[r][v]);
      }
    }
    store_sums<rows, vectors>(sum, c);
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
#pragma GCC unroll 12
        for (int r = 0; r < rows; ++r) {
          const F x = V::set1(a[r]);
#pragma GCC unroll 4
          for (int v = 0; v < vectors; ++v) even[r][v] = V::fma(x, w_even[v], even[r][v]);
        }
#pragma GCC unroll 12
        for (int r = 0; r < rows; ++r) {
          const F x = V::set1(a[a_step + r]);
#pragma GCC unroll 4
          for (int v = 0; v < vectors; ++v) odd[r][v] = V::fma(x, w_odd[v], odd[r][v]);
        }
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

  // One row block times one piece of a panel, with as many rows and columns at a time as the registers hold.
  template <RightSide right, bool tile_order, int rows = tile_order ? 6 : most_rows>
  static void block(int64_t count, const float* a, int64_t a_step, const void* b, int64_t k, float* c, bool first) {
    if constexpr (rows > 0) {
      if (count < rows) return block<right, tile_order, rows - 1>(count, a, a_step, b, k, c, first);
      constexpr int vectors = tile_order && V::registers < 32 ? 1 : 2;
      for (int64_t column = 0; column < panel_columns; column += vectors * width) {
        if constexpr (right != RightSide::panels_bf16) {
          chain_f32<rows, vectors>(a, a_step, static_cast<const float*>(b) + column, k, c + column, first);
        } else {
          const bf16* const at = static_cast<const bf16*>(b) + tile_of(column);
          if constexpr (tile_order) tile_bf16<rows, vectors>(a, a_step, at, k, c + column, first);
          else chain_bf16<rows, vectors>(a, a_step, at, k, c + column, first);
        }
      }
      if (count > rows)
        block<right, tile_order>(count - rows, a + rows, a_step, b, k, c + rows * panel_columns, first);
    }
  }

  static void multiply(const ProductStep& step, int64_t panel, int64_t first, int64_t rows) {
    thread_local Scratch<float> sums_of_thread, gathered_of_thread;
    float* const c = sums_of_thread.at_least(round_up(rows, block_rows) * panel_columns);
    constexpr int64_t piece = 256;
    const int64_t columns = std::min(panel_columns, step.n - panel * panel_columns);
    const int64_t k_step = rows <= block_rows && step.right != RightSide::rows ? step.padded_k : piece;
    float* const gathered = step.right == RightSide::rows ? gathered_of_thread.at_least(piece * panel_columns) : nullptr;
    for (int64_t k0 = 0; k0 < step.padded_k; k0 += k_step) {
      const int64_t k = std::min(k_step, step.padded_k - k0);
      const void* b = gathered;
      if (step.right == RightSide::rows) gather(step.rows, k0, k, panel * panel_columns, columns, gathered);
      else if (step.right == RightSide::panels_f32)
        b = static_cast<const float*>(step.panels) + (panel * step.padded_k + k0) * panel_columns;
      else b = static_cast<const bf16*>(step.panels) + (panel * step.padded_k + k0) * panel_columns;
      const auto one = step.right != RightSide::panels_bf16 ? block<RightSide::panels_f32, false>
                       : step.tile_order                    ? block<RightSide::panels_bf16, true>
                                                            : block<RightSide::panels_bf16, false>;
      for (int64_t r = 0; r < rows; r += block_rows) {
        const int64_t count = std::min(block_rows, rows - r);
        const float* const a = step.a + (first + r) * step.padded_k + k0 * count;
        one(count, a, count, b, k, c + r * panel_columns, k0 == 0);
      }
    }
    if (step.padded_k == 0) std::memset(c, 0, size_t(rows * panel_columns) * sizeof(float));
    for (int64_t r = 0; r < rows; ++r) {
      void* const to = step.y.at(first + r, panel * panel_columns);
      const float* const bias = step.bias ? step.bias + panel * panel_columns : nullptr;
      if (step.y.number == Number::f32) finish(c + r * panel_columns, bias, step.add, columns, static_cast<float*>(to));
      else finish(c + r * panel_columns, bias, step.add, columns, static_cast<bf16*>(to));
    }
  }

  static void pack_rows(Input x, int64_t first, int64_t rows, int64_t k, int64_t padded_k, bool round_to_bf16, float* to) {
    if (x.number == Number::f32) pack_rows(static_cast<const float*>(x.at(first)), x.stride, rows, k, to);
    else pack_rows(static_cast<const bf16*>(x.at(first)), x.stride, rows, k, to);
    std::memset(to + k * rows, 0, size_t((padded_k - k) * rows) * sizeof(float));
    if (!round_to_bf16 || x.number == Number::bf16) return;
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

  static void pack_panel(Input w, int64_t n, int64_t k, int64_t panel, Number number, void* to) {
    const int64_t first = panel * panel_columns, columns = std::min(panel_columns, n - first);
    if (number == Number::f32) {
      float* const panel_f32 = static_cast<float*>(to);
      if (columns < panel_columns) std::memset(to, 0, size_t(k * panel_columns) * sizeof(float));
      if (w.number == Number::f32) turn(static_cast<const float*>(w.at(first)), w.stride, columns, k, panel_columns, panel_f32);
      else turn(static_cast<const bf16*>(w.at(first)), w.stride, columns, k, panel_columns, panel_f32);
      return;
    }
    bf16* const tiles = static_cast<bf16*>(to);
    if (columns < panel_columns || k % k_block) std::memset(to, 0, size_t(panel_elements(number, k)) * sizeof(bf16));
    for (int64_t k0 = 0; k0 < k; k0 += k_block)
      for (int64_t c = 0; c < columns; ++c) {
        bf16* const at = tiles + k0 * panel_columns + tile_of(c);
        const int64_t count = std::min(k_block, k - k0);
        for (int64_t i = 0; i < count; ++i)
          at[i / 2 * 2 * tile_columns + i % 2] =
              w.number == Number::bf16 ? static_cast<const bf16*>(w.at(first + c, k0))[i]
                                       : narrow(static_cast<const float*>(w.at(first + c, k0))[i]);
      }
  }

 private:
  // Where column c of a panel begins within a block of k, in bf16.
  static constexpr int64_t tile_of(int64_t c) { return c / tile_columns * tile_elements + c % tile_columns * 2; }
  static constexpr int64_t tile_at(int vector) { return tile_of(int64_t(vector) * width); }

  template <int rows, int vectors>
  static void load_sums(F (&sum)[rows][vectors], const float* c, bool first) {
#pragma GCC unroll 12
    for (int r = 0; r < rows; ++r)
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) sum[r][v] = first ? V::zero() : V::load(c + r * panel_columns + v * width);
  }
  template <int rows, int vectors>
  static void store_sums(const F (&sum)[rows][vectors], float* c) {
#pragma GCC unroll 12
    for (int r = 0; r < rows; ++r)
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) V::store(c + r * panel_columns + v * width, sum[r][v]);
  }

  static float read(const Input& x, int64_t row, int64_t column) {
    return x.number == Number::f32 ? *static_cast<const float*>(x.at(row, column))
                                   : widen(*static_cast<const bf16*>(x.at(row, column)));
  }
  static void write(float* to, float x) { *to = x; }
  static void write(bf16* to, float x) { *to = narrow(x); }

  // A piece of a panel from row-major rows [k, n], widened.
  static void gather(const Input& rows, int64_t k0, int64_t k, int64_t first, int64_t columns, float* to) {
    if (columns < panel_columns) std::memset(to, 0, size_t(k * panel_columns) * sizeof(float));
    for (int64_t i = 0; i < k; ++i, to += panel_columns) {
      if (columns < panel_columns) {
        for (int64_t c = 0; c < columns; ++c) to[c] = read(rows, k0 + i, first + c);
        continue;
      }
      const void* const from = rows.at(k0 + i, first);
      for (int64_t c = 0; c < panel_columns; c += width)
        V::store(to + c, rows.number == Number::f32 ? V::load(static_cast<const float*>(from) + c)
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

  // to[i * step + r] = x[r * stride + i]: `rows` rows (at most step) become columns.
  template <class T>
  static void turn(const T* x, int64_t stride, int64_t rows, int64_t k, int64_t step, float* to) {
    for (int64_t r = 0; r < rows; r += width) {
      const int64_t count = std::min<int64_t>(width, rows - r);
      int64_t i = 0;
      for (; i + width <= k; i += width) {
        F tile[width];
        for (int64_t j = 0; j < width; ++j) tile[j] = j < count ? V::load(x + (r + j) * stride + i) : V::zero();
        V::transpose(tile);
        for (int64_t j = 0; j < width; ++j) store_some(to + (i + j) * step + r, tile[j], count);
      }
      for (; i < k; ++i)
        for (int64_t j = 0; j < count; ++j) to[i * step + r + j] = widen(x[(r + j) * stride + i]);
    }
  }
  template <class T>
  static void pack_rows(const T* x, int64_t stride, int64_t rows, int64_t k, float* to) {
    turn(x, stride, rows, k, rows, to);
  }
  static void store_some(float* to, F x, int64_t count) {
    if (count == width) return V::store(to, x);
    float all[width];
    V::store(all, x);
    std::memcpy(to, all, size_t(count) * sizeof(float));
  }
};

}  // namespace easydel::kernels
