// The bf16 product by tiles. `Ops` does what the tile instructions do (amx.h, or plain code in the tests); V is the
// vector type for the rest. Tiles 0-3 hold sums (row tile r, column tile c: 2r + c), 4 and 5 the left side, 6 and 7 the
// right.
#pragma once

#include <algorithm>
#include <cstring>

#include "easydel/kernels/memory.h"
#include "easydel/kernels/product_loops.h"

namespace easydel::kernels {

// What LDTILECFG reads.
struct alignas(64) TileConfig {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t bytes_per_row[16] = {};
  uint8_t rows[16] = {};

  // For `count` rows (1 to 32) in two row tiles.
  explicit TileConfig(int64_t count) {
    const int64_t first = std::min<int64_t>(count, 16), second = count - first;
    const int64_t of_tile[8] = {first, first, second, second, first, second, 16, 16};
    for (int t = 0; t < 8; ++t)
      if (of_tile[t] > 0) bytes_per_row[t] = 64, rows[t] = uint8_t(of_tile[t]);
  }
};

template <class Ops, class V>
struct AmxLoops {
  // `rows` (up to 32) rows of x from `first` as [k block][row][32]; missing k are 0.
  static void pack_tile_rows(Input x, int64_t first, int64_t rows, int64_t k, bf16* to) {
    for (int64_t k0 = 0; k0 < k; k0 += k_block)
      for (int64_t r = 0; r < rows; ++r, to += k_block) {
        const int64_t count = std::min(k_block, k - k0);
        if (count < k_block) std::memset(to, 0, k_block * sizeof(bf16));
        ProductLoops<V>::copy_bf16(x, first + r, k0, count, to);
      }
  }

  // Rows [first, first + rows) of one panel of the result; first is a multiple of tile_rows.
  static void multiply_tiles(const ProductStep& step, int64_t panel, int64_t first, int64_t rows) {
    thread_local Scratch<float> sums_of_thread;
    float* const c = sums_of_thread.at_least(round_up(rows, tile_rows) * panel_columns);
    const bf16* const b = static_cast<const bf16*>(step.panels) + panel * step.padded_k * panel_columns;
    const int64_t blocks = step.padded_k / k_block, tail = rows % tile_rows, whole = rows - tail;
    // 8 blocks of a panel and of the rows stay in the first cache beside their sums.
    const int64_t piece = rows <= tile_rows ? blocks : 8;
    const TileConfig whole_config(tile_rows), tail_config(tail > 0 ? tail : 1);
    for (int64_t k0 = 0; k0 < blocks; k0 += piece) {
      const int64_t k = std::min(piece, blocks - k0);
      const bf16* const b_piece = b + k0 * 2 * tile_elements;
      const auto left = [&](int64_t r, int64_t count) {
        return step.a_tiles + (first + r) * step.padded_k + k0 * count * k_block;
      };
      if (whole > 0) Ops::configure(whole_config);
      for (int64_t r = 0; r < whole; r += tile_rows)
        block<2>(left(r, tile_rows), tile_rows, b_piece, k, c + r * panel_columns, k0 == 0);
      if (tail > 0) Ops::configure(tail_config);
      if (tail > 16)
        block<2>(left(whole, tail), tail, b_piece, k, c + whole * panel_columns, k0 == 0);
      else if (tail > 0)
        block<1>(left(whole, tail), tail, b_piece, k, c + whole * panel_columns, k0 == 0);
    }
    Ops::release();
    if (blocks == 0) std::memset(c, 0, size_t(rows * panel_columns) * sizeof(float));
    ProductLoops<V>::write_rows(step, panel, first, rows, c);
  }

 private:
  // One or two row tiles times the two column tiles of a panel, over `blocks` blocks of k.
  template <int row_tiles>
  static void block(const bf16* a, int64_t rows, const bf16* b, int64_t blocks, float* c, bool first) {
    constexpr int64_t line = 64, c_line = panel_columns * sizeof(float);
    float *const right = c + tile_columns, *const below = c + 16 * panel_columns;
    if (first) {
      Ops::template zero<0>(), Ops::template zero<1>();
      if constexpr (row_tiles == 2) Ops::template zero<2>(), Ops::template zero<3>();
    } else {
      Ops::template load<0>(c, c_line), Ops::template load<1>(right, c_line);
      if constexpr (row_tiles == 2)
        Ops::template load<2>(below, c_line), Ops::template load<3>(below + tile_columns, c_line);
    }
    for (int64_t k = 0; k < blocks; ++k, a += rows * k_block, b += 2 * tile_elements) {
      // The panel comes from memory once; the next block of it is asked for while this one is used.
      for (int64_t i = 0; i < 2 * tile_elements; i += k_block) V::prefetch(b + 2 * tile_elements + i);
      Ops::template load<6>(b, line);
      Ops::template load<4>(a, line);
      Ops::template multiply<0, 4, 6>();
      Ops::template load<7>(b + tile_elements, line);
      Ops::template multiply<1, 4, 7>();
      if constexpr (row_tiles == 2) {
        Ops::template load<5>(a + 16 * k_block, line);
        Ops::template multiply<2, 5, 6>();
        Ops::template multiply<3, 5, 7>();
      }
    }
    Ops::template store<0>(c, c_line), Ops::template store<1>(right, c_line);
    if constexpr (row_tiles == 2)
      Ops::template store<2>(below, c_line), Ops::template store<3>(below + tile_columns, c_line);
  }
};

}  // namespace easydel::kernels
