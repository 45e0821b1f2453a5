// Products with weights: the only way to multiply by one. Nobody else calls a matrix product on a weight, so that the
// order of additions is decided here alone.
#pragma once

#include <memory>

#include "easydel/kernels/product.h"
#include "easydel/kernels/quantized.h"
#include "easydel/ops/activation.h"
#include "easydel/tensor/torch.h"

namespace easydel::ops {

// A weight as a product reads it: dense, or quantized.
struct Matrix {
  Tensor master;   // [out, in]: where the gradient goes, in the master's number type
  Tensor compute;  // [out, in], no gradient: the same values in the number type of the computation; may be the master
  // The same packed for kernels; null: packed for each call, which costs little where many rows follow.
  std::shared_ptr<const kernels::PackedWeight> packed;
  std::shared_ptr<const kernels::QuantizedWeight> quantized = {};  // instead of all the others: quantized_product.h

  int64_t out() const { return quantized ? quantized->n() : compute.size(0); }
  int64_t in() const { return quantized ? quantized->k() : compute.size(1); }
};

// x [tokens, in] and the weight that multiplies it.
struct Factors {
  Tensor x;
  Matrix weight;
};

// Null where kernels do not serve this weight (another device, another number type).
std::shared_ptr<const kernels::PackedWeight> pack(const Tensor& weight);
int64_t packed_weights();  // number of weights that pack() has packed in this process

// x [tokens, in] in the number type of the computation -> [tokens, out]: x W^T + bias. An element of the result does
// not depend on the other rows. Gradients flow to x, to the master and to the bias (in its own number type).
// `given`, where defined, is the result of an earlier equal call: it is returned, and only the backward is built.
Tensor product(const Tensor& x, const Matrix& weight, const Tensor& bias = {}, const Tensor& given = {});

// product(gated(gate, up)), of which only gate and up are kept for the backward.
Tensor gated_product(const Tensor& gate, const Tensor& up, Activation kind, const Matrix& weight,
                     const Tensor& bias = {}, const Tensor& given = {});

// The sums themselves, without a gradient: for heads, backwards and other ops.
Tensor multiply(const Tensor& x, const Matrix& weight, const Tensor& bias, at::ScalarType type);  // x W^T + bias
Tensor multiply_back(const Tensor& gradient, const Tensor& weight, at::ScalarType type);          // gradient W
void add_weight_gradient(const Tensor& sum, const Tensor& gradient, const Tensor& x);  // fp32 [out, in] += gradient^T x

}  // namespace easydel::ops
