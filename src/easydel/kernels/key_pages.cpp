#include "easydel/kernels/key_pages.h"

#include <algorithm>

#include "easydel/base/error.h"
#include "easydel/kernels/loops.h"
#include "easydel/kernels/product_layout.h"
#include "easydel/kernels/row_tasks.h"

namespace easydel::kernels {

void write_pages(Executor& executor, std::span<const PagedRows> all, std::span<const PagePlace> places) {
  const Loops& isa = loops();
  int64_t elements = 1;
  for (const PagedRows& one : all) {
    check(one.from.dtype == one.to.dtype, "pages: rows of another number type");
    elements = std::max(elements, one.heads * one.dim);
  }
  run_rows(executor, int64_t(places.size()), elements, [&](int64_t t) {
    for (const PagedRows& one : all) {
      const Heads from{one.from.at(t, 0), one.from.dtype, 0, one.from.head_stride};
      const int64_t at = places[size_t(t)].page * one.page_stride + places[size_t(t)].token * one.to.token_stride;
      const MutableHeads to{static_cast<char*>(one.to.data) + at * bytes_of(one.to.dtype), one.to.dtype, 0,
                            one.to.head_stride};
      isa.pointwise.rotate(from, to, 0, one.heads, one.dim, one.pairs, one.cos + t * one.pairs, one.sin + t * one.pairs,
                           one.interleaved, false);
    }
  });
}

}  // namespace easydel::kernels
