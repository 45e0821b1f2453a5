// Where the keys and values of layers lie in a page.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "easydel/nn/memory.h"

namespace easydel::nn {

// The keys and values of one layer in all pages of a storage.
struct LayerPages {
  Tensor keys, values;  // [pages, kv_heads, page_tokens, dim]; undefined: the layer has none, or is in other pages
};

// A page is one block, so that it can be copied or stored as a whole: of each layer in turn the keys
// [kv_head][token][k_dim], then the values [kv_head][token][v_dim]. Each begins at a multiple of 64 elements.
class PageLayout {
 public:
  // Pages that hold the given layers of `shape`.
  PageLayout(const CacheShape& shape, int64_t page_tokens, std::span<const int64_t> layers);

  int64_t page_tokens() const { return page_tokens_; }
  int64_t page_elements() const { return page_elements_; }  // 0: no layer has keys
  // Views of `storage` [pages, page elements], by layer of the shape.
  std::vector<LayerPages> views(const Tensor& storage) const;
  // Copies the first `tokens` tokens of one page to another.
  static void copy(std::span<const LayerPages> layers, int32_t from, int32_t to, int64_t tokens);

 private:
  struct Place {
    int64_t layer = 0, heads = 0, k_dim = 0, v_dim = 0, k_offset = 0, v_offset = 0;  // offsets in elements
  };

  int64_t page_tokens_, page_elements_ = 0;
  size_t layers_;  // of the shape
  std::vector<Place> places_;
};

}  // namespace easydel::nn
