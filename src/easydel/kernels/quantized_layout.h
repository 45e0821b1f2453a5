// The packed layout of quantized weights that their loops agree on.
//
// Panels of 32 columns n, missing ones of scale 0. A panel is a stream of groups; a group is 32 scales in fp32, then
// blocks of k (missing k are 0 on the left side):
//   bytes   a block is 64 k (32 where groups are no multiple of 64), two tiles of 16 columns; row j of a tile holds,
//   for
//           each of its columns, k = 4j to 4j + 3 in four bytes: the code + 128. An operand of VPDPBUSD and TDPBSUD.
//   table4  a block is 32 k, two tiles of 16 columns of four rows; row j holds, for each column, k = 8j to 8j + 7 in
//   the
//           four bits from bit 0 on.
//
// Left side of bytes: rows of padded k bytes, their sums over each group, and a scale a row. Of table4: as in
// product_layout.h.
#pragma once

#include "easydel/kernels/product_layout.h"

namespace easydel::kernels {

constexpr int64_t scale_bytes = panel_columns * int64_t(sizeof(float));

struct QuantizedStep {
  const uint8_t* panels = nullptr;
  int64_t panel_bytes = 0, k_bytes = 0;  // k_bytes: of all columns of one k
  int64_t k = 0, padded_k = 0, group = 0, groups = 0, block = 0;

  const int8_t* x = nullptr;
  const int32_t* x_sums = nullptr;
  const float* x_scales = nullptr;

  const float* a = nullptr;
  bool tile_order = false;
  const float* table = nullptr;  // rounded to bf16 if tile_order

  ProductStep result;  // m, n, y and bias

  const uint8_t* group_at(int64_t panel, int64_t g) const {
    return panels + panel * panel_bytes + g * (scale_bytes + group * k_bytes);
  }
  int64_t length_of(int64_t g) const { return g + 1 < groups ? group : padded_k - g * group; }
};

}  // namespace easydel::kernels
