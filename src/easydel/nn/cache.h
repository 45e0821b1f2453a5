// Keys, values and recurrent states of running sequences, each in a slot. Keys and values lie in pages that slots take
// as they grow and may share (nn/page_pool.h); a pass gets the memory of its sequences from next().
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "easydel/nn/cache_config.h"
#include "easydel/nn/memory.h"
#include "easydel/nn/page_pool.h"

namespace easydel::nn {

// The dtype of keys and values in a format, given the computation's.
at::ScalarType cache_type(CacheFormat format, at::ScalarType compute);
// UserError at quantization.kv_cache: these layers cannot keep codes, or not in these groups, or not on this device.
// Logs if recurrent states stay fp32.
void check_cache_format(const CacheSetting& setting, const std::vector<CacheLayer>& layers, at::Device device);

class Cache {
 public:
  // Two blocks of keys as the attention kernels read them, so a block never spans two pages.
  static constexpr int64_t default_page_tokens = 128;

  // Storage is reserved for `length` tokens in each of `slots` slots, and grows when they need more.
  Cache(CacheShape shape, int64_t slots, int64_t length, int64_t page_tokens = default_page_tokens);

  const CacheShape& shape() const { return shape_; }
  int64_t slots() const { return int64_t(slots_.size()); }
  int64_t length(int64_t slot) const { return slots_[size_t(slot)].length; }  // tokens that are there

  // The memory of a pass that adds tokens[i] tokens to slot slots[i]. Takes the pages that they need, and copies a page
  // that would be written while another slot shares it.
  std::unique_ptr<Memory> next(std::vector<int64_t> slots, std::vector<int64_t> tokens);
  // Forgets all tokens from position `length` on; 0 frees the slot. Recurrent states cannot be rewound, so with them
  // only 0 and the present length are possible.
  void truncate(int64_t slot, int64_t length);
  // Slot `to` becomes equal to slot `from`. They share the pages, states are copied.
  void copy(int64_t from, int64_t to);
  int64_t bytes() const;  // of pages in use and of states

 private:
  friend class CacheMemory;
  struct Slot {
    int64_t length = 0;
    std::vector<int32_t> pages;
  };

  int64_t pages_of(int64_t tokens) const { return (tokens + pool_.page_tokens() - 1) / pool_.page_tokens(); }
  void reserve(Slot& slot, int64_t tokens);
  void keep_pages(Slot& slot, int64_t pages);

  CacheShape shape_;
  PagePool pool_;
  std::vector<Slot> slots_;
  std::vector<std::vector<Tensor>> states_;  // of each layer: fp32 [slots, shape...]
  bool has_states_ = false;
};

}  // namespace easydel::nn
