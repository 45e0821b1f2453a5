#include "easydel/nn/page_layout.h"

#include "easydel/base/error.h"

namespace easydel::nn {

PageLayout::PageLayout(const CacheShape& shape, int64_t page_tokens, std::span<const int64_t> layers)
    : page_tokens_(page_tokens), layers_(shape.layers.size()) {
  check(page_tokens > 0, "pages: of ", page_tokens, " tokens");
  const auto place = [&](int64_t elements) {
    const int64_t offset = page_elements_;
    page_elements_ += (elements + 63) / 64 * 64;
    return offset;
  };
  for (const int64_t index : layers) {
    const CacheLayer& layer = shape.layers[size_t(index)];
    Place& own = places_.emplace_back();
    own.layer = index, own.heads = layer.kv_heads, own.k_dim = layer.k_dim, own.v_dim = layer.v_dim;
    own.k_offset = place(layer.kv_heads * page_tokens * layer.k_dim);
    own.v_offset = place(layer.kv_heads * page_tokens * layer.v_dim);
  }
}

std::vector<LayerPages> PageLayout::views(const Tensor& storage) const {
  std::vector<LayerPages> out(layers_);
  const auto view = [&](int64_t heads, int64_t dim, int64_t offset) {
    if (heads * dim == 0) return Tensor();
    return storage.as_strided({storage.size(0), heads, page_tokens_, dim}, {page_elements_, page_tokens_ * dim, dim, 1},
                              offset);
  };
  for (const Place& own : places_)
    out[size_t(own.layer)] = {view(own.heads, own.k_dim, own.k_offset), view(own.heads, own.v_dim, own.v_offset)};
  return out;
}

void PageLayout::copy(std::span<const LayerPages> layers, int32_t from, int32_t to, int64_t tokens) {
  for (const LayerPages& layer : layers)
    for (const Tensor* all : {&layer.keys, &layer.values})
      if (all->defined()) all->select(0, to).narrow(1, 0, tokens).copy_(all->select(0, from).narrow(1, 0, tokens));
}

}  // namespace easydel::nn
