// The gradient of a weight during a backward. For a leaf it is accumulated in the leaf's own grad(), so that several
// products, lookups and micro-batches need no temporary tensor and no addition.
#pragma once

#include <string>

#include "easydel/tensor/torch.h"

namespace torch::autograd {
struct AutogradContext;
}

namespace easydel::ops {

class WeightGradient {
 public:
  // In the forward: saves what the backward needs to know of the weight. `name` tells the weights of a node apart.
  static void remember(torch::autograd::AutogradContext* context, const Tensor& master, const std::string& name = {});
  // In the backward: of that shape, on that device.
  WeightGradient(torch::autograd::AutogradContext* context, at::IntArrayRef shape, const at::TensorOptions& options,
                 const std::string& name = {});

  // fp32, with the weight's shape. If begun(), results are added to it; otherwise its contents are uninitialized.
  const Tensor& sum() const { return sum_; }
  bool begun() const { return begun_; }
  // Adds the gradient of a product, or of some of its rows.
  void add(const Tensor& gradient, const Tensor& x);
  void clear();  // to zeros, unless begun; then it is begun
  // What the backward returns for the master, zeros if nothing was added: its gradient, or undefined if it is in grad()
  // already.
  Tensor answer();

 private:
  at::ScalarType type_;
  Tensor leaf_;  // undefined: autograd receives the gradient
  Tensor sum_;
  bool begun_ = false;
};

}  // namespace easydel::ops
