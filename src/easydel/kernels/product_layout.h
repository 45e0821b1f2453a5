// The packed layouts that the loops of a product agree on.
//
// Weight [n, k]: panels of 32 columns n, missing ones zero. fp32: a panel is [k][32]. bf16: a panel is a stream of
// blocks of 32 k (missing ones zero), a block is two tiles of 16 columns, a tile is 16 rows of 64 bytes: row j holds,
// for each of its columns, k = 2j and 2j + 1. Such a tile is an operand of the AMX tile product and 16 registers of
// AVX-512.
//
// Left side: blocks of up to 12 rows, each [padded k][rows of the block] in fp32; for tile instructions, blocks of up
// to 32 rows, each [block of 32 k][rows of the block][32] in bf16; for products of pairs, blocks of up to 12 rows
// (their number is the step's), each [padded k / 2][rows of the block] in pairs of bf16.
#pragma once

#include <algorithm>

#include "easydel/kernels/number.h"
#include "easydel/kernels/order.h"

namespace easydel::kernels {

constexpr int64_t panel_columns = 32, block_rows = 12, tile_rows = 32, k_block = 32, tile_columns = 16;
constexpr int64_t tile_elements = tile_columns * k_block;  // of bf16

constexpr int64_t near_pairs = 256;      // of a row of the left side that are read again and again, see pair_loops.h
constexpr int64_t near_rows = 5 << 17;   // bytes of rows of pairs that stay in the second cache, all of k
constexpr int64_t near_tiles = 9 << 17;  // bytes of the left side that are, by tiles; see amx_loops.h

// How far ahead a panel that is read once, from memory, is asked for: always in the order in which its lines lie, which
// has a quarter to a third more of the memory's speed than the lines of its two tiles in turns.
constexpr int64_t bytes_ahead = 8192;

// How a left side is packed.
enum class Left : uint8_t { rows, tiles, pairs };

// Rows of the blocks of a left side of m rows: as many blocks as are needed, none much smaller than the others.
inline int64_t even_block(int64_t m) { return m == 0 ? block_rows : divide_up(m, divide_up(m, block_rows)); }

// At least `least` parts of `all` units, and no more than those: where it can be, a multiple of `threads`, so that
// parts which are alike keep all of them busy to the end.
inline int64_t even_parts(int64_t all, int64_t least, int64_t threads) {
  return std::max<int64_t>(std::min(round_up(least, threads), all), 1);
}

// Elements of one panel.
inline int64_t panel_elements(Number number, int64_t k) {
  return panel_columns * (number == Number::f32 ? k : round_up(k, k_block));
}

enum class RightSide { panels_f32, panels_bf16, rows };

// Memory that is read soon: `rows` rows of `lines` lines of 64 bytes, `stride` bytes apart.
struct Soon {
  const char* data = nullptr;
  int64_t rows = 0, lines = 0, stride = 0;
};

// Rows [row, row + rows) of x, `columns` of each from `column` on.
inline Soon lines_of(const Input& x, int64_t row, int64_t rows, int64_t columns, int64_t column = 0) {
  return {static_cast<const char*>(x.at(row, column)), rows, divide_up(columns * bytes_of(x.number), 64),
          x.stride * bytes_of(x.number)};
}

// C [m, n] = A [m, k] B [k, n]; what the parts of one product share.
struct ProductStep {
  const float* a = nullptr;           // blocks as above, each row padded to padded_k
  const bf16* a_tiles = nullptr;      // or in tiles
  const uint32_t* a_pairs = nullptr;  // or in pairs, of which padded_k is the number
  int64_t m = 0, n = 0, k = 0, padded_k = 0;
  int64_t block = block_rows;  // of the left side, in pairs
  RightSide right = RightSide::panels_f32;
  Order order = Order::fp32_chain;
  const void* panels = nullptr;
  Input rows{};  // RightSide::rows: row-major [k, n]; of multiply_pair_rows the weight's [n, k]
  Output y{};
  const float* bias = nullptr;
  bool add = false;
  bool streams = false;  // y, in fp32, is not read soon: written past the caches
  Soon soon{};           // what the caller reads after this, for products of pairs
};

// Whether a gradient of as many rows and columns, which is read when all others are made, is better written past the
// caches: it is not small, and lies so that whole lines can be.
inline bool passes_caches(const Output& y, int64_t rows, int64_t columns) {
  return y.number == Number::f32 && rows * columns >= 1 << 16 && reinterpret_cast<uintptr_t>(y.data) % 64 == 0 &&
         y.stride % 16 == 0;
}

}  // namespace easydel::kernels
