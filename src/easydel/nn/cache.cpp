#include "easydel/nn/cache.h"

#include <ATen/ops/zeros.h>

#include <algorithm>

#include "easydel/base/error.h"

namespace easydel::nn {

Cache::Cache(CacheShape shape, int64_t slots, int64_t length, bool growing)
    : shape_(shape), growing_(growing), lengths_(size_t(slots), 0), keys_(size_t(shape.layers)), values_(size_t(shape.layers)) {
  room_ = std::max<int64_t>(length, 1);
  const auto options = at::TensorOptions().dtype(shape.type).device(shape.device);
  for (int64_t layer = 0; layer < shape.layers; ++layer) {
    keys_[size_t(layer)] = at::zeros({slots, room_, shape.kv_heads, shape.k_dim}, options);
    values_[size_t(layer)] = at::zeros({slots, room_, shape.kv_heads, shape.v_dim}, options);
  }
}

void Cache::reserve(int64_t length) {
  if (length <= room_) return;
  check(growing_, "cache: ", length, " tokens in slots of ", room_);
  const int64_t room = std::max(length, 2 * room_);
  const int64_t used = lengths_.empty() ? 0 : *std::max_element(lengths_.begin(), lengths_.end());
  for (auto* tensors : {&keys_, &values_})
    for (Tensor& old : *tensors) {
      Tensor grown = at::zeros({old.size(0), room, old.size(2), old.size(3)}, old.options());
      grown.slice(1, 0, used).copy_(old.slice(1, 0, used));
      old = std::move(grown);
    }
  room_ = room;
}

void Cache::write(int64_t layer, int64_t slot, const Tensor& k, const Tensor& v) {
  const int64_t begin = length(slot), end = begin + k.size(0);
  check(end <= room_, "cache: ", end, " tokens in slots of ", room_);
  keys_[size_t(layer)].select(0, slot).slice(0, begin, end).copy_(k);
  values_[size_t(layer)].select(0, slot).slice(0, begin, end).copy_(v);
}

void Cache::advance(int64_t slot, int64_t tokens) { lengths_[size_t(slot)] += tokens; }

void Cache::truncate(int64_t slot, int64_t length) {
  lengths_[size_t(slot)] = std::min(lengths_[size_t(slot)], length);
}

Tensor Cache::keys(int64_t layer) const { return keys_[size_t(layer)].flatten(0, 1); }
Tensor Cache::values(int64_t layer) const { return values_[size_t(layer)].flatten(0, 1); }

int64_t Cache::bytes() const {
  int64_t sum = 0;
  for (const auto* tensors : {&keys_, &values_})
    for (const Tensor& t : *tensors) sum += int64_t(t.nbytes());
  return sum;
}

}  // namespace easydel::nn
