// Keys and values in pages, as attention reads them: writing rows into pages, and gathering them for backends that know
// no pages. Pages may hold codes (kernels/attention.h), which the write makes of the rotated rows.
#pragma once

#include <cstdint>
#include <span>
#include <utility>

#include "easydel/ops/rope.h"
#include "easydel/tensor/torch.h"

namespace easydel::ops {

// The place of a token's key and value: token `token` of page `page`.
struct PagePlace {
  int32_t page = 0, token = 0;
};

// Pages of keys or of values.
struct Pages {
  Tensor rows;  // [pages, heads, page_tokens, dim]; of int4 codes kByte [..., dim / 2] (kernels/dtype.h: i4_pair)
  // Of codes: fp32 [pages, heads, page_tokens, groups]; each of a vector's equal parts has one. The last dimension is
  // contiguous.
  Tensor scales;

  Pages() = default;
  Pages(Tensor all_rows, Tensor all_scales = {}) : rows(std::move(all_rows)), scales(std::move(all_scales)) {}
};

// Dimensions of a head in the last dimension of `rows`: pages as above, or plain keys and values.
inline int64_t head_dim_of(const Tensor& rows) { return rows.size(-1) * (rows.scalar_type() == at::kByte ? 2 : 1); }

// Writes row i of keys, and of values if defined, [tokens, heads, dim], to places[i] of the pages. `rope` rotates the
// keys while they are written; null: they are copied. No gradient.
void write_pages(const Pages& key_pages, const Tensor& keys, const RopeTable* rope, const Pages& value_pages,
                 const Tensor& values, std::span<const PagePlace> places);

// [count, heads, dim]: positions 0 to count - 1 of a sequence with this page table, codes as fp32. The rows of a head
// are contiguous.
Tensor gather_pages(const Pages& pages, std::span<const int32_t> table, int64_t count);

}  // namespace easydel::ops
