// The packed layout of quantized weights that their loops agree on.
//
// Panels of 32 columns n, missing ones of scale 0. A panel is a stream of groups; a group is 32 scales and, if the spec
// has them, 32 zeros or offsets, in fp32, bf16 or fp16, then blocks of k (missing k are 0 on the left side):
//   bytes   a block is 64 k (32 where groups are no multiple of 64), two tiles of 16 columns; row j of a tile holds,
//           for each of its columns, k = 4j to 4j + 3 in four bytes: the code + 128. An operand of VPDPBUSD and
//           TDPBSUD.
//   nibbles as bytes, with half as many rows in a tile: row j holds the codes + 8 of row j of bytes in the low halves
//   of
//           its bytes, and those of the tile's second half of rows in the high ones.
//   table4  a block is 32 k, two tiles of 16 columns of four rows; row j holds, for each column, k = 8j to 8j + 7 in
//           four bits each: the even k from bit 0 on, the odd ones from bit 16 on, so that a shift and one look-up in
//           words give a pair.
//
// Left side of bytes and nibbles: rows of padded k bytes, their sums over each group, and a scale a row; for tiles
// blocks of up to 32 rows, each [block of k][rows of the block][k of a block]. Of table4: as in product_layout.h.
#pragma once

#include "easydel/kernels/product_layout.h"
#include "easydel/kernels/quantized.h"

namespace easydel::kernels {

constexpr int64_t code_block_bytes = k_block * panel_columns / 2, code_tile_bytes = code_block_bytes / 2;  // of table4

// Which group of four of the 32 bits holds k in table4.
constexpr int64_t nibble_of(int64_t k) { return k % 2 * 4 + k % 8 / 2; }

struct QuantizedStep {
  Codes codes = Codes::bytes;
  const uint8_t* panels = nullptr;
  int64_t panel_bytes = 0, k_bytes = 0;  // k_bytes: of all columns of one k
  CodeNumbers numbers = CodeNumbers::f32;
  CodeShift shift = CodeShift::none;
  int64_t scale_bytes = 0, head_bytes = 0;  // of a group: its scales, and all that is before its codes
  int64_t k = 0, padded_k = 0, group = 0, groups = 0, block = 0;

  const int8_t* x = nullptr;
  const int8_t* x_tiles = nullptr;  // or in tiles
  const int32_t* x_sums = nullptr;
  const float* x_scales = nullptr;

  const float* a = nullptr;
  const bf16* a_tiles = nullptr;      // or in tiles
  const uint32_t* a_pairs = nullptr;  // or in pairs, in blocks of result.block rows
  const float* group_sums = nullptr;  // [m, groups] of x, if the codes are shifted
  AccumulationOrder order = AccumulationOrder::fp32_chain;
  const float* table = nullptr;  // rounded to bf16 in the orders of bf16

  ProductStep result;  // m, n, y, bias, and the rows of a block of the left side

  const uint8_t* group_at(int64_t panel, int64_t g) const {
    return panels + panel * panel_bytes + g * (head_bytes + group * k_bytes);
  }
  const uint8_t* codes_at(int64_t panel, int64_t g) const { return group_at(panel, g) + head_bytes; }
  int64_t length_of(int64_t g) const { return g + 1 < groups ? group : padded_k - g * group; }
};

// `k` k of nibbles, whole blocks, as bytes. Always inlined, because each instruction set has its own.
[[gnu::always_inline]] inline void widen_nibbles(const uint8_t* from, int64_t block, int64_t k, uint8_t* to) {
  constexpr int64_t line = 64;
  constexpr uint8_t zero = 128 - 8;
  const int64_t half = block / 8 * line;  // of a tile of bytes
  for (int64_t tile = 0; tile < 2 * k / block; ++tile, to += 2 * half)
    for (int64_t j = 0; j < half; j += line, from += line) {
      __builtin_prefetch(from + prefetch_distance_bytes / 2);
      for (int64_t i = 0; i < line; ++i) to[j + i] = uint8_t((from[i] & 15) + zero);
      for (int64_t i = 0; i < line; ++i) to[half + j + i] = uint8_t((from[i] >> 4) + zero);
    }
}

}  // namespace easydel::kernels
