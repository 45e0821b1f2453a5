#include "easydel/nn/page_pool.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "easydel/base/error.h"

namespace easydel::nn {

namespace {

std::vector<int64_t> all_layers(const CacheShape& shape) {
  std::vector<int64_t> all(shape.layers.size());
  std::iota(all.begin(), all.end(), int64_t(0));
  return all;
}

}  // namespace

PagePool::PagePool(const CacheShape& shape, int64_t page_tokens, int64_t pages)
    : layout_(shape, page_tokens, all_layers(shape)), device_(shape.device), layers_(shape.layers.size()) {
  if (!empty()) reserve(std::max<int64_t>(pages, 1));
}

void PagePool::reserve(int64_t pages) {
  check(pages <= std::numeric_limits<int32_t>::max(), "page pool: ", pages, " pages");
  const Tensor storage = at::empty({pages, page_bytes()}, at::TensorOptions().dtype(at::kByte).device(device_));
  const int64_t before = counts_.ids();
  if (before > 0) storage.narrow(0, 0, before).copy_(storage_.narrow(0, 0, before));
  storage_ = storage, capacity_ = pages;
  layers_ = layout_.views(storage_);
}

int32_t PagePool::take() {
  if (counts_.free() == 0 && counts_.ids() == capacity_) reserve(2 * capacity_);
  return counts_.take();
}

int32_t PagePool::own(int32_t page, int64_t tokens) {
  if (counts_.owners(page) == 1) return page;
  const int32_t copy = take();
  PageLayout::copy(layers_, page, copy, tokens);
  give_back(page);
  return copy;
}

}  // namespace easydel::nn
