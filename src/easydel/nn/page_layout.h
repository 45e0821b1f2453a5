// Where the keys and values of layers lie in a page.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "easydel/nn/memory.h"
#include "easydel/ops/key_pages.h"

namespace easydel::nn {

// The keys and values of one layer in all pages of a storage. Undefined: the layer has none, or is in other pages.
struct LayerPages {
  Tensor keys, values;              // [pages, kv_heads, page_tokens, dim]; of int4 values dim / 2
  Tensor key_scales, value_scales;  // of codes: fp32 [pages, kv_heads, page_tokens, groups]

  KeyPages without_tables() const { return {keys, values, {}, key_scales, value_scales}; }
  // As Memory::write, of tokens that go to `places`.
  void write(int64_t first_head, const Tensor& new_keys, const Tensor& new_values, const ops::RopeTable* rope,
             std::span<const ops::PagePlace> places) const;
};

// A page is one block of bytes, so that it can be copied or stored as a whole: of each layer in turn the keys
// [kv_head][token][k_dim], then the values [kv_head][token][v_dim]; of codes, then the fp32 scales of the keys
// [kv_head][token][group] and those of the values. Each takes a multiple of 64 elements of its type (int4 values:
// bytes).
class PageLayout {
 public:
  // Pages that hold the given layers of `shape`.
  PageLayout(const CacheShape& shape, int64_t page_tokens, std::span<const int64_t> layers);

  int64_t page_tokens() const { return page_tokens_; }
  int64_t page_bytes() const { return page_bytes_; }  // 0: no layer has keys
  // Views of `storage`, uint8 [pages, page bytes], by layer of the shape.
  std::vector<LayerPages> views(const Tensor& storage) const;
  // Copies the first `tokens` tokens of one page to another, with their scales.
  static void copy(std::span<const LayerPages> layers, int32_t from, int32_t to, int64_t tokens);

 private:
  // [heads][page tokens][dim] from byte `offset` of a page.
  struct Array {
    int64_t heads = 0, dim = 0, offset = 0;
    at::ScalarType type = at::kFloat;
  };
  struct Place {
    int64_t layer = 0;
    Array keys, values, key_scales, value_scales;
  };

  Array place(int64_t heads, int64_t dim, at::ScalarType type);
  Tensor view(const Tensor& storage, const Array& array) const;

  int64_t page_tokens_, page_bytes_ = 0;
  size_t layers_;  // of the shape
  std::vector<Place> places_;
};

}  // namespace easydel::nn
