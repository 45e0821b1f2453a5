// Products of the same x with several weights.
#pragma once

#include <span>
#include <vector>

#include "easydel/ops/product.h"

namespace easydel::ops {

struct JointFactor {
  Matrix weight;
  Tensor bias;  // may be undefined
};

// product(x, weight, bias) of each, with its bits and its gradients. Without gradients neighbours that kernels take
// together (kernels/joint_products.h) share the packing of x and one run of tasks.
std::vector<Tensor> products(const Tensor& x, std::span<const JointFactor> factors);

}  // namespace easydel::ops
