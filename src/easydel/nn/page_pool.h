// Pages of keys and values: blocks of equal size, each with room for some tokens of all layers, taken on demand and
// counted by their owners. Which sequence has which page is the business of nn/cache.h.
#pragma once

#include <cstdint>
#include <vector>

#include "easydel/nn/memory.h"
#include "easydel/nn/page_counts.h"
#include "easydel/nn/page_layout.h"

namespace easydel::nn {

// Storage is reserved for a number of pages, but the system provides memory only for what is written.
class PagePool {
 public:
  // Room for `pages` pages; take() doubles it when they are all in use.
  PagePool(const CacheShape& shape, int64_t page_tokens, int64_t pages);

  bool empty() const { return layout_.page_bytes() == 0; }  // no layer has keys
  int64_t page_tokens() const { return layout_.page_tokens(); }
  int64_t page_bytes() const { return layout_.page_bytes(); }
  int64_t used() const { return counts_.used(); }  // pages that have an owner

  // A page with one owner. What it holds is undefined.
  int32_t take();
  // share() adds an owner, give_back() removes one. A page without owners is free.
  void share(int32_t page) { counts_.share(page); }
  void give_back(int32_t page) { counts_.give_back(page); }
  // Makes a page that its caller owns writable: returns `page` itself if it has no other owner. Otherwise gives it back
  // and returns a new page with a copy of its first `tokens` tokens.
  int32_t own(int32_t page, int64_t tokens);

  // Views of the storage; valid until take() or own() is called.
  const LayerPages& layer(int64_t layer) const { return layers_[size_t(layer)]; }

 private:
  void reserve(int64_t pages);

  PageLayout layout_;
  int64_t capacity_ = 0;
  at::Device device_;
  Tensor storage_;  // uint8 [capacity, page bytes]
  std::vector<LayerPages> layers_;
  PageCounts counts_;
};

}  // namespace easydel::nn
