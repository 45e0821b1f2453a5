#include "easydel/nn/cache.h"

#include <ATen/ops/zeros.h>

#include <algorithm>

#include "easydel/base/error.h"

namespace easydel::nn {
namespace {

// One block for the keys and values of all layers: large enough for huge pages, which one layer's often are not.
class Block {
 public:
  Block(int64_t slots, int64_t room) : slots_(slots), room_(room) {}
  void count(int64_t heads, int64_t dim) { size_ += elements(heads, dim); }
  void allocate(const at::TensorOptions& options) { all_ = at::zeros({size_}, options); }
  // What was counted, in any order.
  Tensor take(int64_t heads, int64_t dim) {
    const Tensor own = all_.narrow(0, taken_, heads * slots_ * room_ * dim);
    taken_ += elements(heads, dim);
    return own.view({heads, slots_, room_, dim}).permute({1, 2, 0, 3});
  }

 private:
  int64_t elements(int64_t heads, int64_t dim) const { return (heads * slots_ * room_ * dim + 63) / 64 * 64; }

  int64_t slots_, room_, size_ = 0, taken_ = 0;
  Tensor all_;
};

}  // namespace

Cache::Cache(CacheShape shape, int64_t slots, int64_t length, bool growing)
    : growing_(growing), lengths_(size_t(slots), 0) {
  room_ = std::max<int64_t>(length, 1);
  const auto options = at::TensorOptions().dtype(shape.type).device(shape.device);
  Block block(slots, room_);
  for (const CacheLayer& layer : shape.layers)
    block.count(layer.kv_heads, layer.k_dim), block.count(layer.kv_heads, layer.v_dim);
  block.allocate(options);
  for (const CacheLayer& layer : shape.layers) {
    Store store;
    if (layer.kv_heads > 0) {
      store.keys = block.take(layer.kv_heads, layer.k_dim);
      store.values = block.take(layer.kv_heads, layer.v_dim);
    }
    for (std::vector<int64_t> size : layer.states) {
      size.insert(size.begin(), slots);
      store.states.push_back(at::zeros(size, options.dtype(at::kFloat)));
      has_states_ = true;
    }
    layers_.push_back(std::move(store));
  }
}

void Cache::reserve(int64_t length) {
  if (length <= room_) return;
  check(growing_, "cache: ", length, " tokens in slots of ", room_);
  const int64_t room = std::max(length, 2 * room_);
  const int64_t used = lengths_.empty() ? 0 : *std::max_element(lengths_.begin(), lengths_.end());
  std::vector<Tensor*> all;
  for (Store& layer : layers_)
    for (Tensor* one : {&layer.keys, &layer.values})
      if (one->defined()) all.push_back(one);
  Block block(slots(), room);
  for (const Tensor* old : all) block.count(old->size(2), old->size(3));
  if (!all.empty()) block.allocate(all.front()->options());
  for (Tensor* old : all) {
    const Tensor grown = block.take(old->size(2), old->size(3));
    grown.slice(1, 0, used).copy_(old->slice(1, 0, used));
    *old = grown;
  }
  room_ = room;
}

Cache::Rows Cache::next(int64_t layer, int64_t slot, int64_t tokens) const {
  const int64_t begin = length(slot), end = begin + tokens;
  check(end <= room_, "cache: ", end, " tokens in slots of ", room_);
  const Store& store = layers_[size_t(layer)];
  return {store.keys.select(0, slot).slice(0, begin, end), store.values.select(0, slot).slice(0, begin, end)};
}

Tensor Cache::state(int64_t layer, size_t index) const { return layers_[size_t(layer)].states.at(index); }

void Cache::advance(int64_t slot, int64_t tokens) { lengths_[size_t(slot)] += tokens; }

void Cache::truncate(int64_t slot, int64_t length) {
  int64_t& now = lengths_[size_t(slot)];
  if (length >= now) return;
  if (has_states_) {
    check(length == 0, "cache: recurrent states of ", now, " tokens cannot go back to ", length);
    for (Store& layer : layers_)
      for (Tensor& state : layer.states) state.select(0, slot).zero_();
  }
  now = length;
}

void Cache::copy(int64_t from, int64_t to, int64_t begin) {
  const int64_t end = length(from);
  for (Store& layer : layers_) {
    for (const Tensor* rows : {&layer.keys, &layer.values})
      if (rows->defined() && begin < end)
        rows->select(0, to).slice(0, begin, end).copy_(rows->select(0, from).slice(0, begin, end));
    for (const Tensor& state : layer.states) state.select(0, to).copy_(state.select(0, from));
  }
  lengths_[size_t(to)] = end;
}

Tensor Cache::keys(int64_t layer) const { return layers_[size_t(layer)].keys.flatten(0, 1); }
Tensor Cache::values(int64_t layer) const { return layers_[size_t(layer)].values.flatten(0, 1); }

int64_t Cache::bytes() const {
  int64_t sum = 0;
  for (const Store& layer : layers_) {
    for (const Tensor* t : {&layer.keys, &layer.values}) sum += t->defined() ? int64_t(t->nbytes()) : 0;
    for (const Tensor& t : layer.states) sum += int64_t(t.nbytes());
  }
  return sum;
}

}  // namespace easydel::nn
