// The gradient of a product to its activations, of a weight that does not exist as a whole.
#pragma once

#include <functional>

#include "easydel/tensor/torch.h"

namespace easydel::ops {

// A weight [n, k] that is made some rows at a time, in `type`: rows(first, count) gives [count, k] on a CPU, which is
// read until the next call.
struct WeightRows {
  int64_t n = 0, k = 0;
  at::ScalarType type = at::kFloat;
  std::function<Tensor(int64_t first, int64_t count)> rows;
};

// gradient [m, n] W in `type`: the bits of multiply_back() with the whole weight. rows() is called for at most 2048
// rows at a time, and for all of them again for every 1024 rows of the gradient if these are bf16 and there are more.
Tensor multiply_back(const Tensor& gradient, const WeightRows& weight, at::ScalarType type);

}  // namespace easydel::ops
