#include "easydel/nn/page_pool.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <limits>

#include "easydel/base/error.h"

namespace easydel::nn {

PagePool::PagePool(const CacheShape& shape, int64_t page_tokens, int64_t pages)
    : page_tokens_(page_tokens), options_(at::TensorOptions().dtype(shape.type).device(shape.device)) {
  check(page_tokens > 0, "page pool: pages of ", page_tokens, " tokens");
  // Each layer begins at a multiple of 64 elements.
  const auto place = [&](int64_t elements) {
    const int64_t offset = page_elements_;
    page_elements_ += (elements + 63) / 64 * 64;
    return offset;
  };
  for (const CacheLayer& layer : shape.layers) {
    LayerPages own;
    own.heads = layer.kv_heads, own.k_dim = layer.k_dim, own.v_dim = layer.v_dim;
    own.k_offset = place(layer.kv_heads * page_tokens * layer.k_dim);
    own.v_offset = place(layer.kv_heads * page_tokens * layer.v_dim);
    layers_.push_back(std::move(own));
  }
  if (!empty()) reserve(std::max<int64_t>(pages, 1));
}

int64_t PagePool::page_bytes() const { return page_elements_ * int64_t(options_.dtype().itemsize()); }

void PagePool::reserve(int64_t pages) {
  check(pages <= std::numeric_limits<int32_t>::max(), "page pool: ", pages, " pages");
  const Tensor storage = at::empty({pages, page_elements_}, options_);
  const int64_t before = counts_.ids();
  if (before > 0) storage.narrow(0, 0, before).copy_(storage_.narrow(0, 0, before));
  storage_ = storage, capacity_ = pages;
  const auto view = [&](int64_t heads, int64_t dim, int64_t offset) {
    if (heads * dim == 0) return Tensor();
    return storage_.as_strided({pages, heads, page_tokens_, dim}, {page_elements_, page_tokens_ * dim, dim, 1}, offset);
  };
  for (LayerPages& layer : layers_) {
    layer.keys = view(layer.heads, layer.k_dim, layer.k_offset);
    layer.values = view(layer.heads, layer.v_dim, layer.v_offset);
  }
}

int32_t PagePool::take() {
  if (counts_.free() == 0 && counts_.ids() == capacity_) reserve(2 * capacity_);
  return counts_.take();
}

int32_t PagePool::own(int32_t page, int64_t tokens) {
  if (counts_.owners(page) == 1) return page;
  const int32_t copy = take();
  for (const LayerPages& layer : layers_)
    for (const Tensor* all : {&layer.keys, &layer.values})
      if (all->defined()) all->select(0, copy).narrow(1, 0, tokens).copy_(all->select(0, page).narrow(1, 0, tokens));
  give_back(page);
  return copy;
}

}  // namespace easydel::nn
