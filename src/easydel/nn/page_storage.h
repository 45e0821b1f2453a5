// Storage of pages and states whose ids somebody else counts and assigns: the engine's memory (esurge/page_pools.h has
// the ids). The Generator's memory is nn/cache.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "easydel/nn/memory.h"
#include "easydel/nn/page_layout.h"
#include "easydel/tensor/reserved_memory.h"

namespace easydel::nn {

// Layers whose pages have ids in common: a page holds the keys and values of all of them.
struct PageGroup {
  // Their indices in the shape. Of a group of states: every layer that has states.
  std::vector<int64_t> layers;
  bool states = false;  // an id is the states of one sequence instead of a page of keys
};

// Layers of equal reach share a group: those that see every token first, then windows and chunks by their size, then
// all states.
std::vector<PageGroup> groups_of(const CacheShape& shape);
// Bytes of one page, or of the states of one sequence.
int64_t bytes_of(const CacheShape& shape, const PageGroup& group, int64_t page_tokens);

class PageStorage {
 public:
  // ids[group] is the number of ids, which count from 0. Memory is taken from the system when it is written.
  PageStorage(CacheShape shape, int64_t page_tokens, std::vector<PageGroup> groups, std::vector<int64_t> ids);
  ~PageStorage();

  const CacheShape& shape() const { return shape_; }
  int64_t page_tokens() const { return page_tokens_; }

  // Copies the first `tokens` tokens of page `from`, or a state, to `to`.
  void copy(int group, int32_t from, int32_t to, int64_t tokens);
  // Makes a state zero.
  void clear(int group, int32_t state);
  // Gives the memory of a page or state back to the system, as far as it fills whole pages of the system.
  void release(int group, int32_t id);

  // The contents of a page or state as bytes_of() it has them, from and to memory of the caller.
  void read(int group, int32_t id, std::span<std::byte> to) const;
  void write(int group, int32_t id, std::span<const std::byte> from);

  struct Sequence {
    int64_t length = 0, added = 0;
    // By group: position t is token t % page_tokens of page tables[group][t / page_tokens]; -1: a window or chunk has
    // passed it. Of a group of states one id.
    std::vector<std::span<const int32_t>> tables;
  };
  // The memory of a pass over these sequences. Tables are copied; the storage must outlive it.
  std::unique_ptr<Memory> memory(std::span<const Sequence> sequences) const;

 private:
  friend class StorageMemory;
  struct Block;  // one group's storage

  CacheShape shape_;
  int64_t page_tokens_;
  std::vector<PageGroup> groups_;
  std::vector<std::unique_ptr<Block>> blocks_;
  std::vector<LayerPages> pages_;            // of each layer
  std::vector<int> group_of_;                // of each layer's keys; -1: none
  std::vector<std::vector<Tensor>> states_;  // of each layer: fp32 [ids, shape...]
  int state_group_ = -1;
};

}  // namespace easydel::nn
