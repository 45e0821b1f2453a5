// The packed layouts of a product's two sides, which packing and multiplying loops agree on.
//
// Right side, a weight [n, k]: panels of 32 columns n, missing ones zero. fp32: a panel is [k][32]. bf16: a panel is a
// stream of blocks of 32 k (missing ones zero); a block is two tiles of 16 columns; a tile is 16 rows of 64 bytes: row
// j holds k = 2j and 2j + 1 of each of its columns. Such a tile is an operand of the AMX tile product and 16 registers
// of AVX-512.
//
// Left side, by LeftSide:
//   rows   blocks of up to 12 rows, each [padded k][rows of the block] in fp32
//   tiles  blocks of up to 32 rows, each [block of 32 k][rows of the block][32] in bf16
//   pairs  blocks of up to 12 rows (ProductStep::rows_per_block), each [padded k / 2][rows of the block] in pairs of
//   bf16
#pragma once

#include <algorithm>

#include "easydel/kernels/accumulation_order.h"
#include "easydel/kernels/dtype.h"

namespace easydel::kernels {

constexpr int64_t panel_columns = 32, block_rows = 12, tile_rows = 32, k_block = 32, tile_columns = 16;
constexpr int64_t tile_elements = tile_columns * k_block;  // of bf16

// The L2 size that the loops are tuned for, and the part of it that packed rows of the left side may take (all of k),
// so that they stay in L2 while panels stream.
constexpr int64_t tuned_l2_bytes = 1 << 20;
constexpr int64_t l2_bytes_for_pairs(int64_t l2_bytes = tuned_l2_bytes) { return l2_bytes / 8 * 5; }
constexpr int64_t l2_bytes_for_tiles(int64_t l2_bytes = tuned_l2_bytes) { return l2_bytes / 8 * 9; }

// Longer rows of pairs are multiplied in stretches of this many pairs; see pair_loops.h.
constexpr int64_t pairs_per_stretch = 256;

// Prefetch distance in a panel that is read once, from memory. Lines are prefetched in the order of their addresses,
// which reaches a quarter to a third more bandwidth than alternating between the lines of the panel's two tiles.
constexpr int64_t prefetch_distance_bytes = 8192;

enum class LeftSide : uint8_t { rows, tiles, pairs };
enum class RightSide { panels_f32, panels_bf16, rows };

// Rows per block of a left side of m rows: equal blocks, as few as possible.
inline int64_t equal_block_rows(int64_t m) { return m == 0 ? block_rows : divide_up(m, divide_up(m, block_rows)); }

// Number of tasks: at least `min_tasks`, at most `units`, rounded up to a multiple of `threads` so that equal tasks
// finish together.
inline int64_t task_count(int64_t min_tasks, int64_t units, int64_t threads) {
  return std::max<int64_t>(std::min(round_up(min_tasks, threads), units), 1);
}

// Elements of one panel.
inline int64_t panel_elements(DType dtype, int64_t k) {
  return panel_columns * (dtype == DType::f32 ? k : round_up(k, k_block));
}

// Memory to prefetch: `rows` rows of `lines` cache lines, `stride` bytes apart.
struct PrefetchRange {
  const char* data = nullptr;
  int64_t rows = 0, lines = 0, stride = 0;
};

// Rows [row, row + rows) of x, `columns` columns of each starting at `column`.
inline PrefetchRange lines_of(const Input& x, int64_t row, int64_t rows, int64_t columns, int64_t column = 0) {
  return {static_cast<const char*>(x.at(row, column)), rows, divide_up(columns * bytes_of(x.dtype), 64),
          x.stride * bytes_of(x.dtype)};
}

// C [m, n] = A [m, k] B [k, n]; what the tasks of one product share.
struct ProductStep {
  // The packed left side in one of three forms, each row padded to padded_k elements.
  const float* a = nullptr;
  const bf16* a_tiles = nullptr;
  const uint32_t* a_pairs = nullptr;
  int64_t m = 0, n = 0, k = 0, padded_k = 0;
  int64_t rows_per_block = block_rows;  // of a_pairs
  RightSide right = RightSide::panels_f32;
  AccumulationOrder order = AccumulationOrder::fp32_chain;
  const void* panels = nullptr;
  Input rows{};  // RightSide::rows: row-major [k, n]. multiply_pair_rows: the weight's [n, k]
  Output y{};
  const float* bias = nullptr;
  bool add = false;
  bool non_temporal = false;  // y is fp32 and not read soon: its stores bypass the caches
  PrefetchRange next{};       // read by the caller after this step; prefetched by products of pairs
};

// Whether a gradient of so many rows and columns is written by stores that bypass the caches: it is read only after all
// gradients are made. It must not be small, and must be aligned to whole cache lines.
inline bool is_non_temporal(const Output& y, int64_t rows, int64_t columns) {
  return y.dtype == DType::f32 && rows * columns >= 1 << 16 && reinterpret_cast<uintptr_t>(y.data) % 64 == 0 &&
         y.stride % 16 == 0;
}

}  // namespace easydel::kernels
