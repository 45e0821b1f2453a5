// The gradient of a weight while a backward makes it. A leaf's is added up where it stays, in its own grad(), so that
// several products, lookups and micro-batches need neither a tensor between nor an addition.
#pragma once

#include "easydel/tensor/torch.h"

namespace torch::autograd {
struct AutogradContext;
}

namespace easydel::ops {

class WeightGradient {
 public:
  // In the forward: what the backward needs to know of the weight.
  static void remember(torch::autograd::AutogradContext* context, const Tensor& master);
  // In the backward: of that shape, on that device.
  WeightGradient(torch::autograd::AutogradContext* context, at::IntArrayRef shape, const at::TensorOptions& options);

  // fp32, the weight's shape; what is made is added to it where begun(), else its contents are not set yet.
  const Tensor& sum() const { return sum_; }
  bool begun() const { return begun_; }
  // A product's, or a part of its rows'.
  void add(const Tensor& gradient, const Tensor& x);
  void clear();  // zeros, unless it is begun; then it is
  // What the backward answers for the master, zeros where nothing was added: its gradient, or undefined where that is
  // in grad() already.
  Tensor answer();

 private:
  at::ScalarType type_;
  Tensor leaf_;  // undefined: autograd gets the gradient
  Tensor sum_;
  bool begun_ = false;
};

}  // namespace easydel::ops
