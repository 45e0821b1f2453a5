// A memory that shares no code with nn::Cache: pages of three tokens, separate for each layer, allocated in a shuffled
// order, in plain ATen.
#pragma once

#include <ATen/ops/full.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <limits>
#include <random>

#include "easydel/nn/memory.h"
#include "easydel/ops/rope.h"

namespace easydel::test {

// Of one sequence.
class ShuffledMemory final : public nn::Memory {
 public:
  static constexpr int64_t page_tokens = 3;

  ShuffledMemory(const nn::CacheShape& shape, int64_t length) {
    const int64_t pages = (length + page_tokens - 1) / page_tokens + 5;
    for (int32_t page = 0; page < pages; ++page) table_.push_back(page);
    std::shuffle(table_.begin(), table_.end(), std::mt19937(7));
    // Memory that was not written is NaN, so that reading it shows.
    const auto rows = [&](int64_t heads, int64_t dim) {
      return heads * dim == 0 ? Tensor()
                              : at::full({pages, heads, page_tokens, dim}, std::numeric_limits<double>::quiet_NaN(),
                                         at::TensorOptions().dtype(shape.type));
    };
    for (const nn::CacheLayer& layer : shape.layers) {
      Store& store = layers_.emplace_back();
      store.keys = rows(layer.kv_heads, layer.k_dim), store.values = rows(layer.kv_heads, layer.v_dim);
      for (std::vector<int64_t> size : layer.states) {
        size.insert(size.begin(), 1);
        store.states.push_back(at::zeros(size, at::TensorOptions().dtype(at::kFloat)));
      }
    }
  }

  // The next pass adds `tokens` tokens.
  void add(int64_t tokens) { added_ = tokens; }

  int64_t sequences() const override { return 1; }
  int64_t length(int64_t) const override { return length_; }
  int64_t added(int64_t) const override { return added_; }
  void write(int64_t layer, int64_t first_head, const Tensor& keys, const Tensor& values,
             const ops::RopeTable* rope) override {
    const auto put = [&](const Tensor& pages, const Tensor& rows) {
      for (int64_t i = 0; i < added_; ++i) {
        const int64_t at = length_ + i;
        pages[table_[size_t(at / page_tokens)]]
            .select(1, at % page_tokens)
            .narrow(0, first_head, rows.size(1))
            .copy_(rows[i]);
      }
    };
    put(layers_[size_t(layer)].keys, rope ? ops::rope(keys, *rope) : keys);
    if (values.defined()) put(layers_[size_t(layer)].values, values);
  }
  nn::KeyPages ranges(int64_t layer) const override {
    return {layers_[size_t(layer)].keys, layers_[size_t(layer)].values, {table_}};
  }
  Tensor take_states(int64_t layer, size_t index) override { return layers_[size_t(layer)].states.at(index).clone(); }
  void put_states(int64_t layer, size_t index, const Tensor& states) override {
    layers_[size_t(layer)].states.at(index) = states;
  }
  void finish() override { length_ += added_, added_ = 0; }

 private:
  struct Store {
    Tensor keys, values;
    std::vector<Tensor> states;
  };

  std::vector<int32_t> table_;
  std::vector<Store> layers_;
  int64_t length_ = 0, added_ = 0;
};

}  // namespace easydel::test
