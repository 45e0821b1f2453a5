// The tile instructions, and the block of accumulators that every tile product is cut into: up to 32 rows x 32 columns.
// Tiles 0-3 hold accumulators (row tile r, column tile c: 2r + c), 4 and 5 the left side, 6 and 7 the right.
//
// Inline assembly instead of intrinsics: those of g++ 12 declare only 8 of a configuration's 64 bytes as read, so the
// compiler removes its stores and the first tile instruction raises SIGILL. Included by loops_amx.cpp only.
#pragma once

#include <algorithm>
#include <cstdint>

#include "easydel/kernels/product_layout.h"
#include "easydel/kernels/simd_avx512.h"

namespace easydel::kernels {

// The operand of LDTILECFG.
struct alignas(64) TileConfig {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t bytes_per_row[16] = {};
  uint8_t rows[16] = {};

  // Configuration for `count` rows (1 to 32) of the left side in two row tiles; a row has `line` bytes.
  TileConfig(int64_t count, int64_t line) {
    const int64_t upper_rows = std::min<int64_t>(count, 16), lower_rows = count - upper_rows;
    const int64_t of_tile[8] = {upper_rows, upper_rows, lower_rows, lower_rows,
                                upper_rows, lower_rows, line / 4,   line / 4};
    for (int t = 0; t < 8; ++t)
      if (of_tile[t] > 0) bytes_per_row[t] = uint16_t(t == 4 || t == 5 ? line : 64), rows[t] = uint8_t(of_tile[t]);
  }
};

struct Amx {
  static void configure(const TileConfig& config) { asm volatile("ldtilecfg %0" ::"m"(config)); }
  static void release() { asm volatile("tilerelease" ::); }
  template <int tile>
  static void zero() {
    asm volatile("tilezero %%tmm%c0" ::"i"(tile));
  }
  template <int tile>
  static void load(const void* from, int64_t stride) {
    asm volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(from), "r"(stride), "i"(tile) : "memory");
  }
  template <int tile>
  static void store(void* to, int64_t stride) {
    asm volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(to), "r"(stride), "i"(tile) : "memory");
  }
};

// sums += left x right: pairs of bf16 into fp32, or signed bytes (left) with signed or unsigned bytes (right).
struct Bf16Tiles {
  template <int sums, int left, int right>
  static void multiply() {
    asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(sums), "i"(left), "i"(right));
  }
};
struct ByteTiles {
  template <int sums, int left, int right>
  static void multiply() {
    asm volatile("tdpbsud %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(sums), "i"(left), "i"(right));
  }
};

// Owns the thread's tile registers, for left sides whose rows have `line` bytes per block of k.
class TileRegisters {
 public:
  explicit TileRegisters(int64_t line) : line_(line) {}
  ~TileRegisters() {
    if (rows_ > 0) Amx::release();
  }
  TileRegisters(const TileRegisters&) = delete;
  TileRegisters& operator=(const TileRegisters&) = delete;

  int64_t line() const { return line_; }

  // Configures for blocks of `rows` rows. The tiles' contents are lost.
  void take(int64_t rows) {
    if (rows == rows_) return;
    Amx::configure(TileConfig(rows, line_));
    rows_ = rows;
  }

 private:
  int64_t line_, rows_ = 0;
};

// Cache lines to prefetch while a block is multiplied: this many per block of k.
struct LinesAhead {
  const char* at = nullptr;
  int64_t lines = 0;

  void operator()() {
    for (int64_t i = 0; i < lines; ++i) Avx512::prefetch(at + 64 * i);
    at += 64 * lines;
  }
};

// The number of lines, for a right side that is contiguous in memory. One block of rows reads the next block of k, 2
// KiB ahead; with more, each prefetches a part of the next chunk. Measured on hardware with tiles: more lines were
// slower.
inline int64_t lines_ahead(int64_t row_blocks) {
  return row_blocks == 1 ? 32 : row_blocks >= 6 && row_blocks < 12 ? 4 : 2;
}

// Accumulators [rows][32] of 32 bits each, rows `line` bytes apart. `first`: start from zero.
struct TileSums {
  void* at;
  bool first;
  int64_t line = panel_columns * sizeof(float);
};

// c += left x right over `blocks` blocks of k. A block of the left side is `rows` rows of `line` bytes; a block of the
// right side is two tiles of 16 columns and line / 4 rows.
template <class Op, int row_tiles>
void sum_tiles(const void* left, int64_t rows, int64_t line, const void* right, int64_t blocks, const TileSums& c,
               LinesAhead& ahead) {
  constexpr int64_t tile_line = 64;
  const int64_t right_tile = line / 4 * tile_line;
  const char *a = static_cast<const char*>(left), *b = static_cast<const char*>(right);
  char *const sums = static_cast<char*>(c.at), *const lower_sums = sums + 16 * c.line;
  if (c.first) {
    Amx::zero<0>(), Amx::zero<1>();
    if constexpr (row_tiles == 2) Amx::zero<2>(), Amx::zero<3>();
  } else {
    Amx::load<0>(sums, c.line), Amx::load<1>(sums + tile_line, c.line);
    if constexpr (row_tiles == 2) Amx::load<2>(lower_sums, c.line), Amx::load<3>(lower_sums + tile_line, c.line);
  }
  for (int64_t k = 0; k < blocks; ++k, a += rows * line, b += 2 * right_tile) {
    ahead();
    Amx::load<6>(b, tile_line);
    Amx::load<4>(a, line);
    Op::template multiply<0, 4, 6>();
    Amx::load<7>(b + right_tile, tile_line);
    Op::template multiply<1, 4, 7>();
    if constexpr (row_tiles == 2) {
      Amx::load<5>(a + 16 * line, line);
      Op::template multiply<2, 5, 6>();
      Op::template multiply<3, 5, 7>();
    }
  }
  Amx::store<0>(sums, c.line), Amx::store<1>(sums + tile_line, c.line);
  if constexpr (row_tiles == 2) Amx::store<2>(lower_sums, c.line), Amx::store<3>(lower_sums + tile_line, c.line);
}

// The same for any number of rows up to 32; the registers must be configured for it.
template <class Op>
void sum_tiles(TileRegisters& registers, const void* left, int64_t rows, const void* right, int64_t blocks,
               const TileSums& c, LinesAhead& ahead) {
  registers.take(rows);
  if (rows > 16)
    sum_tiles<Op, 2>(left, rows, registers.line(), right, blocks, c, ahead);
  else
    sum_tiles<Op, 1>(left, rows, registers.line(), right, blocks, c, ahead);
}

}  // namespace easydel::kernels
