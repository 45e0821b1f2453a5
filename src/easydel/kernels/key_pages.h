// Writes keys and values into pages, rotating them and making codes of them if asked.
#pragma once

#include <cstdint>
#include <span>

#include "easydel/kernels/attention.h"
#include "easydel/kernels/executor.h"

namespace easydel::kernels {

// Token `token` of page `page`.
struct PagePlace {
  int32_t page = 0, token = 0;
};

// Rows of one tensor, and the pages that receive them: of the same dtype, or codes with scales. Codes are made of the
// rotated rows, rounded to the dtype of `from`.
struct PagedRows {
  Heads from;       // [tokens, heads, dim]
  MutableHeads to;  // of page 0: [page tokens, heads, dim]
  int64_t page_stride = 0;
  // Of codes, in floats, of page 0: [page tokens, heads, groups]; a vector's `groups` equal parts have one each.
  float* scales = nullptr;
  int64_t groups = 1;
  int64_t scale_token_stride = 0, scale_head_stride = 0, scale_page_stride = 0;
  int64_t heads = 0, dim = 0;
  // The first 2 x pairs dimensions of a head are rotated by cos and sin [tokens, pairs], contiguous; pairs 0: none.
  int64_t pairs = 0;
  const float *cos = nullptr, *sin = nullptr;
  bool interleaved = false;
};

// Row i of each tensor is written to places[i].
void write_pages(Executor& executor, std::span<const PagedRows> all, std::span<const PagePlace> places);

}  // namespace easydel::kernels
