// Keys and values in pages, as attention reads them: writing rows into pages, and gathering them for backends that know
// no pages.
#pragma once

#include <cstdint>
#include <span>

#include "easydel/ops/rope.h"
#include "easydel/tensor/torch.h"

namespace easydel::ops {

// The place of a token's key and value: token `token` of page `page`.
struct PagePlace {
  int32_t page = 0, token = 0;
};

// Writes row i of keys, and of values if defined, [tokens, heads, dim], to places[i] of pages [pages, heads,
// page_tokens, dim]. `rope` rotates the keys while they are written; null: they are copied. No gradient.
void write_pages(const Tensor& key_pages, const Tensor& keys, const RopeTable* rope, const Tensor& value_pages,
                 const Tensor& values, std::span<const PagePlace> places);

// [count, heads, dim]: positions 0 to count - 1 of a sequence with this page table. The rows of a head are contiguous.
Tensor gather_pages(const Tensor& pages, std::span<const int32_t> table, int64_t count);

}  // namespace easydel::ops
