#include "easydel/nn/cache.h"

#include <ATen/ops/zeros.h>

#include <algorithm>
#include <numeric>

#include "easydel/base/error.h"
#include "easydel/base/log.h"
#include "easydel/nn/state_slots.h"
#include "easydel/ops/key_pages.h"

namespace easydel::nn {

at::ScalarType cache_type(CacheFormat format, at::ScalarType compute) {
  switch (format) {
    case CacheFormat::automatic:
      return compute;
    case CacheFormat::fp32:
      return at::kFloat;
    case CacheFormat::bf16:
      return at::kBFloat16;
    case CacheFormat::int8:
      return at::kChar;
    case CacheFormat::int4_values:
      return at::kByte;
    case CacheFormat::e4m3:
      return at::kFloat8_e4m3fn;
  }
  __builtin_unreachable();
}

void check_cache_format(const CacheSetting& setting, const std::vector<CacheLayer>& layers, at::Device device) {
  const CacheFormat format = setting.format;
  const int64_t group = setting.group_size;
  const bool pairs = format == CacheFormat::int4_values;
  if (format != CacheFormat::int8 && format != CacheFormat::e4m3 && !pairs) return;
  constexpr int64_t max_dim = 1024;  // of int8 keys, whose sums are exact (kernels/attention.h)
  const auto refuse_codes = [](std::string problem, const char* remedy) {
    refuse("quantization.kv_cache", std::move(problem), remedy);
  };
  if (!device.is_cpu()) refuse_codes("a quantized KV cache on a GPU is not built yet", "set loader.device to cpu");
  bool has_keys = false, has_states = false;
  int64_t common = 0;  // what a group's size must divide
  for (const CacheLayer& layer : layers) {
    has_states |= !layer.states.empty();
    if (layer.kv_heads == 0) continue;
    has_keys = true;
    if (pairs && layer.v_dim == 0)
      refuse_codes("multi-head latent attention keeps no values that could have four bits", "choose 8bit");
    for (const int64_t size : {layer.k_dim, layer.v_dim, layer.key_group}) common = std::gcd(common, size);
    CacheShape own;
    own.group_size = group;
    if (layer.k_dim > max_dim && own.key_scales(layer) <= 1 && own.value_scales(layer) <= 1)
      refuse_codes(str("heads of ", layer.k_dim, " dimensions are not built yet"), "leave it out");
    if (pairs && layer.v_dim % 2 != 0)
      refuse_codes(str("values of ", layer.v_dim, " dimensions in four bits are not built yet"), "choose 8bit");
  }
  if (!has_keys)
    refuse_codes("this model keeps no keys and values, only recurrent states, which stay fp32", "leave it out");
  if (group > 0 && common % group != 0) {
    // The greatest one that is less, for more precision than without groups.
    int64_t example = std::min(group, common);
    while (common % example != 0) --example;
    refuse("quantization.kv_cache.group_size",
           str("groups of ", group, " do not divide the vectors that this model keeps of a token and head"),
           str("a divisor of ", common, " works, for example ", example));
  }
  if (has_states) log::info("quantization.kv_cache: keys and values are quantized; recurrent states stay fp32");
}

Cache::Cache(CacheShape shape, int64_t slots, int64_t length, int64_t page_tokens)
    : shape_(std::move(shape)),
      pool_(shape_, page_tokens, slots * ((length + page_tokens - 1) / page_tokens)),
      slots_(size_t(slots)) {
  for (const CacheLayer& layer : shape_.layers) {
    std::vector<Tensor>& own = states_.emplace_back();
    for (std::vector<int64_t> size : layer.states) {
      size.insert(size.begin(), slots);
      own.push_back(at::zeros(size, at::TensorOptions().dtype(at::kFloat).device(shape_.device)));
      has_states_ = true;
    }
  }
}

void Cache::keep_pages(Slot& slot, int64_t pages) {
  while (int64_t(slot.pages.size()) > pages) pool_.give_back(slot.pages.back()), slot.pages.pop_back();
}

void Cache::reserve(Slot& slot, int64_t tokens) {
  if (tokens == 0 || pool_.empty()) return;
  const int64_t page = slot.length / pool_.page_tokens(), filled = slot.length % pool_.page_tokens();
  if (filled > 0) slot.pages[size_t(page)] = pool_.own(slot.pages[size_t(page)], filled);
  while (int64_t(slot.pages.size()) < pages_of(slot.length + tokens)) slot.pages.push_back(pool_.take());
}

void Cache::truncate(int64_t slot, int64_t length) {
  Slot& own = slots_[size_t(slot)];
  if (length >= own.length) return;
  if (has_states_) {
    check(length == 0, "cache: recurrent states of ", own.length, " tokens cannot go back to ", length);
    for (const std::vector<Tensor>& layer : states_)
      for (const Tensor& state : layer) state.select(0, slot).zero_();
  }
  own.length = length;
  keep_pages(own, pages_of(length));
}

void Cache::copy(int64_t from, int64_t to) {
  if (from == to) return;
  const Slot& source = slots_[size_t(from)];
  Slot& target = slots_[size_t(to)];
  // The page that a pass writes its tokens to is not shared.
  const int64_t pages = std::min(pages_of(source.length), int64_t(source.pages.size()));
  for (int64_t i = 0; i < pages; ++i) pool_.share(source.pages[size_t(i)]);
  keep_pages(target, 0);
  target.pages.assign(source.pages.begin(), source.pages.begin() + pages);
  target.length = source.length;
  for (const std::vector<Tensor>& layer : states_)
    for (const Tensor& state : layer) state.select(0, to).copy_(state.select(0, from));
}

int64_t Cache::bytes() const {
  int64_t sum = pool_.used() * pool_.page_bytes();
  for (const std::vector<Tensor>& layer : states_)
    for (const Tensor& state : layer) sum += int64_t(state.nbytes());
  return sum;
}

class CacheMemory final : public Memory {
 public:
  CacheMemory(Cache& cache, std::vector<int64_t> slots, std::vector<int64_t> tokens)
      : cache_(cache), slots_(std::move(slots)), added_(std::move(tokens)), states_(slots_) {
    check(slots_.size() == added_.size(), "cache: ", slots_.size(), " slots, ", added_.size(), " counts of tokens");
    const int64_t page_tokens = cache.pool_.page_tokens();
    for (size_t i = 0; i < slots_.size(); ++i) {
      Cache::Slot& slot = cache.slots_[size_t(slots_[i])];
      lengths_.push_back(slot.length);
      cache.reserve(slot, added_[i]);
      if (cache.pool_.empty()) continue;
      for (int64_t at = slot.length; at < slot.length + added_[i]; ++at)
        places_.push_back({slot.pages[size_t(at / page_tokens)], int32_t(at % page_tokens)});
    }
  }

  int64_t sequences() const override { return int64_t(slots_.size()); }
  int64_t length(int64_t sequence) const override { return lengths_[size_t(sequence)]; }
  int64_t added(int64_t sequence) const override { return added_[size_t(sequence)]; }

  void write(int64_t layer, int64_t first_head, const Tensor& keys, const Tensor& values,
             const ops::RopeTable* rope) override {
    cache_.pool_.layer(layer).write(first_head, keys, values, rope, places_);
  }

  KeyPages ranges(int64_t layer) const override {
    KeyPages pages = cache_.pool_.layer(layer).without_tables();
    for (const int64_t slot : slots_) pages.tables.emplace_back(cache_.slots_[size_t(slot)].pages);
    return pages;
  }

  Tensor take_states(int64_t layer, size_t index) override {
    return states_.take(cache_.states_[size_t(layer)].at(index));
  }
  void put_states(int64_t layer, size_t index, const Tensor& states) override {
    states_.put(cache_.states_[size_t(layer)].at(index), states);
  }

  void finish() override {
    check(!finished_, "cache: a pass is finished twice");
    finished_ = true;
    for (size_t i = 0; i < slots_.size(); ++i) cache_.slots_[size_t(slots_[i])].length += added_[i];
  }

 private:
  Cache& cache_;
  std::vector<int64_t> slots_, added_, lengths_;
  StateSlots states_;
  std::vector<ops::PagePlace> places_;  // of the added tokens
  bool finished_ = false;
};

std::unique_ptr<Memory> Cache::next(std::vector<int64_t> slots, std::vector<int64_t> tokens) {
  return std::make_unique<CacheMemory>(*this, std::move(slots), std::move(tokens));
}

}  // namespace easydel::nn
