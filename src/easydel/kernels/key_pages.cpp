#include "easydel/kernels/key_pages.h"

#include <algorithm>

#include "easydel/base/error.h"
#include "easydel/kernels/loops.h"
#include "easydel/kernels/memory.h"
#include "easydel/kernels/product_layout.h"
#include "easydel/kernels/row_tasks.h"

namespace easydel::kernels {

namespace {

// Makes codes of the heads of one token.
void encode(const Loops& isa, const PagedRows& one, Heads from, PagePlace place) {
  const int64_t at = place.page * one.page_stride + place.token * one.to.token_stride;
  float* const scales = one.scales + place.page * one.scale_page_stride + place.token * one.scale_token_stride;
  for (int64_t h = 0; h < one.heads; ++h)
    isa.attention.encode_row(from.at(0, h), from.dtype, one.dim, one.groups, one.to.dtype,
                             static_cast<char*>(one.to.data) + at + h * one.to.head_stride,
                             scales + h * one.scale_head_stride);
}

}  // namespace

void write_pages(Executor& executor, std::span<const PagedRows> all, std::span<const PagePlace> places) {
  const Loops& isa = loops();
  int64_t elements = 1;
  for (const PagedRows& one : all) {
    check(is_coded(one.to.dtype) ? one.scales != nullptr : one.from.dtype == one.to.dtype,
          "pages: rows of another number type");
    check(one.groups > 0 && one.dim % one.groups == 0, "pages: groups that differ in size");
    elements = std::max(elements, one.heads * one.dim);
  }
  run_rows(executor, int64_t(places.size()), elements, [&](int64_t t) {
    thread_local Scratch<float> of_thread;
    for (const PagedRows& one : all) {
      const PagePlace place = places[size_t(t)];
      const Heads from{one.from.at(t, 0), one.from.dtype, 0, one.from.head_stride, 0, {}};
      const bool coded = is_coded(one.to.dtype);
      if (coded && one.pairs == 0) {
        encode(isa, one, from, place);
        continue;
      }
      const int64_t at = place.page * one.page_stride + place.token * one.to.token_stride;
      const MutableHeads rotated =
          coded ? MutableHeads{of_thread.at_least(one.heads * one.dim), one.from.dtype, 0, one.dim}
                : MutableHeads{static_cast<char*>(one.to.data) + at * bytes_of(one.to.dtype), one.to.dtype, 0,
                               one.to.head_stride};
      isa.pointwise.rotate(from, rotated, 0, one.heads, one.dim, one.pairs, one.cos + t * one.pairs,
                           one.sin + t * one.pairs, one.interleaved, false);
      if (coded) encode(isa, one, rotated, place);
    }
  });
}

}  // namespace easydel::kernels
