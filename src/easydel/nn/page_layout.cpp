#include "easydel/nn/page_layout.h"

#include "easydel/base/error.h"

namespace easydel::nn {

void LayerPages::write(int64_t first_head, const Tensor& new_keys, const Tensor& new_values, const ops::RopeTable* rope,
                       std::span<const ops::PagePlace> places) const {
  const auto heads = [&](const Tensor& pages) {
    return pages.defined() ? pages.narrow(1, first_head, new_keys.size(1)) : pages;
  };
  ops::write_pages({heads(keys), heads(key_scales)}, new_keys, rope, {heads(values), heads(value_scales)}, new_values,
                   places);
}

PageLayout::PageLayout(const CacheShape& shape, int64_t page_tokens, std::span<const int64_t> layers)
    : page_tokens_(page_tokens), layers_(shape.layers.size()) {
  check(page_tokens > 0, "pages: of ", page_tokens, " tokens");
  for (const int64_t index : layers) {
    const CacheLayer& layer = shape.layers[size_t(index)];
    Place& own = places_.emplace_back();
    own.layer = index;
    own.keys = place(layer.kv_heads, layer.k_dim, shape.key_type());
    own.values = place(layer.kv_heads, shape.value_elements(layer.v_dim), shape.type);
    if (!shape.is_coded()) continue;
    own.key_scales = place(layer.kv_heads, shape.key_scales(layer), at::kFloat);
    own.value_scales = place(layer.kv_heads, shape.value_scales(layer), at::kFloat);
  }
}

PageLayout::Array PageLayout::place(int64_t heads, int64_t dim, at::ScalarType type) {
  const Array array{heads, dim, page_bytes_, type};
  page_bytes_ += (heads * page_tokens_ * dim + 63) / 64 * 64 * int64_t(c10::elementSize(type));
  return array;
}

Tensor PageLayout::view(const Tensor& storage, const Array& array) const {
  if (array.heads * array.dim == 0) return Tensor();
  const int64_t size = int64_t(c10::elementSize(array.type));
  return storage.view(array.type)
      .as_strided({storage.size(0), array.heads, page_tokens_, array.dim},
                  {page_bytes_ / size, page_tokens_ * array.dim, array.dim, 1}, array.offset / size);
}

std::vector<LayerPages> PageLayout::views(const Tensor& storage) const {
  std::vector<LayerPages> out(layers_);
  for (const Place& own : places_)
    out[size_t(own.layer)] = {view(storage, own.keys), view(storage, own.values), view(storage, own.key_scales),
                              view(storage, own.value_scales)};
  return out;
}

void PageLayout::copy(std::span<const LayerPages> layers, int32_t from, int32_t to, int64_t tokens) {
  for (const LayerPages& layer : layers)
    for (const Tensor* all : {&layer.keys, &layer.values, &layer.key_scales, &layer.value_scales})
      if (all->defined()) all->select(0, to).narrow(1, 0, tokens).copy_(all->select(0, from).narrow(1, 0, tokens));
}

}  // namespace easydel::nn
