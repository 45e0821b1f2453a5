// Layers of a table of their own, filled with random values, for tests of one layer.
#pragma once

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>

#include <string>

#include "easydel/nn/pass.h"
#include "easydel/nn/scope.h"
#include "easydel/tensor/random.h"

namespace easydel::nn {

inline Tensor random_values(const std::vector<int64_t>& shape, const std::string& name) {
  Tensor out = at::empty(shape, at::TensorOptions().dtype(at::kFloat));
  tensor::fill_normal(out, tensor::key_of(7, name), 0.5, shape, std::vector<int64_t>(shape.size(), 0));
  return out;
}

struct Built {
  ParameterTable table;
  Building building{table, at::kFloat, collective::Team::alone(), {}, {}, {}, {}, {}};

  // Parameters require gradients if `learns`; constants are filled as the layer requests.
  explicit Built(at::ScalarType compute = at::kFloat, bool learns = false) {
    building.compute = compute;
    building.fill = [learns](Entry& entry, const Initial& initial, const std::vector<TensorSource>&) {
      entry.shard = initial.kind == Initial::Kind::normal
                        ? random_values(entry.shape, entry.path)
                        : at::full(entry.shape, initial.value, at::TensorOptions().dtype(at::kFloat));
      entry.trainable = entry.trainable && learns;
      entry.shard.set_requires_grad(entry.trainable);
    };
  }
  Scope scope() { return Scope(building); }
  Entry& entry(const char* path) { return *table.find(path); }
};

}  // namespace easydel::nn
