#include "easydel/nn/page_storage.h"

#include <ATen/ops/from_blob.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <tuple>

#include "easydel/base/error.h"
#include "easydel/nn/state_slots.h"
#include "easydel/ops/key_pages.h"

namespace easydel::nn {
namespace {

int64_t elements_of(const std::vector<int64_t>& shape) {
  int64_t product = 1;
  for (const int64_t size : shape) product *= size;
  return product;
}

// States of different layers begin at multiples of a cache line, for all numbers of ids.
int64_t bytes_of_states(const std::vector<int64_t>& shape, int64_t ids) {
  return (ids * elements_of(shape) * int64_t(sizeof(float)) + 63) / 64 * 64;
}

}  // namespace

std::vector<PageGroup> groups_of(const CacheShape& shape) {
  std::map<std::tuple<int64_t, int64_t>, PageGroup> by_reach;
  PageGroup states{{}, true};
  for (size_t i = 0; i < shape.layers.size(); ++i) {
    const CacheLayer& layer = shape.layers[i];
    // A layer with both sees less than its window.
    const int64_t chunk = layer.window > 0 ? 0 : layer.chunk;
    if (layer.kv_heads > 0) by_reach[{layer.window, chunk}].layers.push_back(int64_t(i));
    if (!layer.states.empty()) states.layers.push_back(int64_t(i));
  }
  std::vector<PageGroup> out;
  for (auto& [reach, group] : by_reach) out.push_back(std::move(group));
  if (!states.layers.empty()) out.push_back(std::move(states));
  return out;
}

int64_t bytes_of(const CacheShape& shape, const PageGroup& group, int64_t page_tokens) {
  if (!group.states) return PageLayout(shape, page_tokens, group.layers).page_bytes();
  int64_t sum = 0;
  for (const int64_t layer : group.layers)
    for (const std::vector<int64_t>& state : shape.layers[size_t(layer)].states)
      sum += elements_of(state) * int64_t(sizeof(float));
  return sum;
}

struct PageStorage::Block {
  std::optional<tensor::ReservedMemory> memory;  // on a CPU
  Tensor pages;                                  // of keys: uint8 [ids, page bytes]
  std::vector<Tensor> states;                    // of states: each [ids, shape...]
};

PageStorage::PageStorage(CacheShape shape, int64_t page_tokens, std::vector<PageGroup> groups, std::vector<int64_t> ids)
    : shape_(std::move(shape)),
      page_tokens_(page_tokens),
      groups_(std::move(groups)),
      pages_(shape_.layers.size()),
      group_of_(shape_.layers.size(), -1),
      states_(shape_.layers.size()) {
  check(ids.size() == groups_.size(), "page storage: ", ids.size(), " counts of ids for ", groups_.size(), " groups");
  const bool cpu = shape_.device.is_cpu();
  for (size_t g = 0; g < groups_.size(); ++g) {
    const PageGroup& group = groups_[g];
    const int64_t count = std::max<int64_t>(ids[g], 1);
    check(count <= std::numeric_limits<int32_t>::max(), "page storage: ", count, " pages");
    Block& block = *blocks_.emplace_back(std::make_unique<Block>());
    if (!group.states) {
      const PageLayout layout(shape_, page_tokens, group.layers);
      const auto options = at::TensorOptions().dtype(at::kByte).device(shape_.device);
      if (cpu) {
        block.memory.emplace(count * layout.page_bytes());
        block.pages = at::from_blob(block.memory->data(), {count, layout.page_bytes()}, options);
      } else {
        block.pages = at::zeros({count, layout.page_bytes()}, options);
      }
      const std::vector<LayerPages> views = layout.views(block.pages);
      for (const int64_t layer : group.layers)
        pages_[size_t(layer)] = views[size_t(layer)], group_of_[size_t(layer)] = int(g);
      continue;
    }
    state_group_ = int(g);
    int64_t bytes = 0;
    for (const int64_t layer : group.layers)
      for (const auto& state : shape_.layers[size_t(layer)].states) bytes += bytes_of_states(state, count);
    if (cpu) block.memory.emplace(bytes);
    int64_t offset = 0;
    for (const int64_t layer : group.layers)
      for (const auto& state : shape_.layers[size_t(layer)].states) {
        std::vector<int64_t> sizes = state;
        sizes.insert(sizes.begin(), count);
        const auto options = at::TensorOptions().dtype(at::kFloat).device(shape_.device);
        block.states.push_back(cpu ? at::from_blob(block.memory->data() + offset, sizes, options)
                                   : at::zeros(sizes, options));
        states_[size_t(layer)].push_back(block.states.back());
        offset += bytes_of_states(state, count);
      }
  }
}

PageStorage::~PageStorage() = default;

void PageStorage::copy(int group, int32_t from, int32_t to, int64_t tokens) {
  const PageGroup& own = groups_[size_t(group)];
  if (own.states) {
    for (const Tensor& state : blocks_[size_t(group)]->states) state.select(0, to).copy_(state.select(0, from));
    return;
  }
  for (const int64_t layer : own.layers) PageLayout::copy({&pages_[size_t(layer)], 1}, from, to, tokens);
}

void PageStorage::clear(int group, int32_t state) {
  check(groups_[size_t(group)].states, "page storage: a page of keys is cleared");
  for (const Tensor& all : blocks_[size_t(group)]->states) all.select(0, state).zero_();
}

void PageStorage::release(int group, int32_t id) {
  Block& block = *blocks_[size_t(group)];
  if (!block.memory) return;
  const auto release = [&](const Tensor& all) {
    const Tensor one = all.select(0, id);
    const int64_t begin = static_cast<const std::byte*>(one.const_data_ptr()) - block.memory->data();
    block.memory->release(begin, int64_t(one.numel() * one.element_size()));
  };
  if (block.pages.defined()) release(block.pages);
  for (const Tensor& state : block.states) release(state);
}

namespace {

// Calls give(bytes as a tensor, their number) for each part of a page or state, in order.
template <class Block, class Give>
void for_each_part(const Block& block, int32_t id, const Give& give) {
  if (block.pages.defined()) give(block.pages.select(0, id));
  for (const Tensor& state : block.states) give(state.select(0, id).view({-1}).view(at::kByte));
}

}  // namespace

void PageStorage::read(int group, int32_t id, std::span<std::byte> to) const {
  for_each_part(*blocks_[size_t(group)], id, [&](const Tensor& part) {
    const auto bytes = size_t(part.numel());
    check(bytes <= to.size(), "page storage: a page has more than ", to.size(), " bytes");
    at::from_blob(to.data(), {part.numel()}, at::kByte).copy_(part);
    to = to.subspan(bytes);
  });
  check(to.empty(), "page storage: a page has ", to.size(), " bytes less than were wanted");
}

void PageStorage::write(int group, int32_t id, std::span<const std::byte> from) {
  for_each_part(*blocks_[size_t(group)], id, [&](const Tensor& part) {
    const auto bytes = size_t(part.numel());
    check(bytes <= from.size(), "page storage: a page has more than ", from.size(), " bytes");
    // from_blob() has no form for memory that is only read.
    part.copy_(at::from_blob(const_cast<std::byte*>(from.data()), {part.numel()}, at::kByte));
    from = from.subspan(bytes);
  });
  check(from.empty(), "page storage: a page has ", from.size(), " bytes less than were given");
}

class StorageMemory final : public Memory {
 public:
  StorageMemory(const PageStorage& storage, std::span<const PageStorage::Sequence> sequences)
      : storage_(storage),
        places_(storage.groups_.size()),
        tables_(storage.groups_.size()),
        states_(slots_of(storage, sequences)) {
    for (const PageStorage::Sequence& sequence : sequences) {
      lengths_.push_back(sequence.length), added_.push_back(sequence.added);
      for (size_t g = 0; g < tables_.size(); ++g) {
        if (!storage.groups_[g].states) add_table(g, sequence);
      }
    }
  }

  int64_t sequences() const override { return int64_t(lengths_.size()); }
  int64_t length(int64_t sequence) const override { return lengths_[size_t(sequence)]; }
  int64_t added(int64_t sequence) const override { return added_[size_t(sequence)]; }

  void write(int64_t layer, int64_t first_head, const Tensor& keys, const Tensor& values,
             const ops::RopeTable* rope) override {
    storage_.pages_[size_t(layer)].write(first_head, keys, values, rope, places_[size_t(group_of(layer))]);
  }

  KeyPages ranges(int64_t layer) const override {
    KeyPages out = storage_.pages_[size_t(layer)].without_tables();
    for (const std::vector<int32_t>& table : tables_[size_t(group_of(layer))]) out.tables.emplace_back(table);
    return out;
  }

  Tensor take_states(int64_t layer, size_t index) override {
    return states_.take(storage_.states_[size_t(layer)].at(index));
  }
  void put_states(int64_t layer, size_t index, const Tensor& states) override {
    states_.put(storage_.states_[size_t(layer)].at(index), states);
  }

  // The owner of the ids counts the tokens.
  void finish() override {
    check(!finished_, "page storage: a pass is finished twice");
    finished_ = true;
  }

 private:
  static std::vector<int64_t> slots_of(const PageStorage& storage, std::span<const PageStorage::Sequence> sequences) {
    std::vector<int64_t> out;
    if (storage.state_group_ < 0) return out;
    for (const PageStorage::Sequence& sequence : sequences)
      out.push_back(sequence.tables[size_t(storage.state_group_)].front());
    return out;
  }

  int group_of(int64_t layer) const {
    const int group = storage_.group_of_[size_t(layer)];
    check(group >= 0, "page storage: layer ", layer, " keeps no keys");
    return group;
  }
  void add_table(size_t group, const PageStorage::Sequence& sequence) {
    const int64_t page_tokens = storage_.page_tokens_, end = sequence.length + sequence.added;
    std::vector<int32_t>& table =
        tables_[group].emplace_back(sequence.tables[group].begin(), sequence.tables[group].end());
    check(int64_t(table.size()) * page_tokens >= end, "page storage: ", end, " tokens in ", table.size(), " pages");
    // Attention may read all of a block of keys of which it uses some; what it reads there does not matter.
    const auto held = std::ranges::find_if(table, [](int32_t page) { return page >= 0; });
    if (held != table.end()) std::fill(table.begin(), held, *held);
    for (int64_t at = sequence.length; at < end; ++at) {
      const int32_t page = table[size_t(at / page_tokens)];
      check(page >= 0, "page storage: no page for position ", at);
      places_[group].push_back({page, int32_t(at % page_tokens)});
    }
  }

  const PageStorage& storage_;
  std::vector<int64_t> lengths_, added_;
  std::vector<std::vector<ops::PagePlace>> places_;        // by group: of the added tokens
  std::vector<std::vector<std::vector<int32_t>>> tables_;  // by group and sequence
  StateSlots states_;
  bool finished_ = false;
};

std::unique_ptr<Memory> PageStorage::memory(std::span<const Sequence> sequences) const {
  return std::make_unique<StorageMemory>(*this, sequences);
}

}  // namespace easydel::nn
