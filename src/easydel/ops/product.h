// Products with weights. No other code multiplies by a weight, so the order of additions is decided only here.
#pragma once

#include <memory>

#include "easydel/kernels/encoded_weight.h"
#include "easydel/kernels/product.h"
#include "easydel/kernels/quantized.h"
#include "easydel/ops/activation.h"
#include "easydel/tensor/torch.h"

namespace easydel::ops {

// A weight in the form that a product reads: dense, quantized, or in the codes of its file.
struct Matrix {
  Tensor master;   // [out, in]: receives the gradient, in its own dtype
  Tensor compute;  // [out, in], no gradient: the same values in the compute dtype; may be the master
  // Packed for kernels. Null: packed on each call, which costs little for many rows.
  std::shared_ptr<const kernels::PackedWeight> packed;
  // Either replaces all the others: quantized_product.h
  std::shared_ptr<const kernels::QuantizedWeight> quantized = {};
  std::shared_ptr<const kernels::EncodedWeight> encoded = {};

  bool in_codes() const { return quantized || encoded; }
  int64_t out() const { return encoded ? encoded->n : quantized ? quantized->n() : compute.size(0); }
  int64_t in() const { return encoded ? encoded->k() : quantized ? quantized->k() : compute.size(1); }
};

// x [tokens, in] and the weight that multiplies it.
struct Factors {
  Tensor x;
  Matrix weight;
};

// Null if kernels do not support this weight (another device or dtype).
std::shared_ptr<const kernels::PackedWeight> pack(const Tensor& weight);
int64_t packed_weights();  // number of weights that pack() has packed in this process

// x [tokens, in] in the compute dtype -> [tokens, out]: x W^T + bias. An element of the result does not depend on the
// other rows. Gradients flow to x, to the master and to the bias (in its own dtype). `given`, if defined, is the result
// of an earlier equal call: it is returned, and only the backward is built.
Tensor product(const Tensor& x, const Matrix& weight, const Tensor& bias = {}, const Tensor& given = {});

// product(gated(gate, up)); only gate and up are kept for the backward.
Tensor gated_product(const Tensor& gate, const Tensor& up, Activation kind, const Matrix& weight,
                     const Tensor& bias = {}, const Tensor& given = {});

// The products without autograd, for heads, backwards and other ops.
Tensor multiply(const Tensor& x, const Matrix& weight, const Tensor& bias, at::ScalarType type);  // x W^T + bias
Tensor multiply_back(const Tensor& gradient, const Tensor& weight, at::ScalarType type);          // gradient W
Tensor multiply_back(const Tensor& gradient, const Matrix& weight, at::ScalarType type);          // of codes by panels
void add_weight_gradient(const Tensor& sum, const Tensor& gradient, const Tensor& x);  // fp32 [out, in] += gradient^T x

}  // namespace easydel::ops
