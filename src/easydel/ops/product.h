// Products with weights: the only way to multiply by one. Nobody else calls a matrix product on a weight, so that the
// order of additions is decided here alone.
#pragma once

#include "easydel/tensor/torch.h"

namespace easydel::ops {

// A weight as a product reads it.
struct Matrix {
  Tensor master;   // [out, in]: where the gradient goes, in the master's number type
  Tensor compute;  // [out, in], no gradient: the same values in the number type of the computation; may be the master
};

// x [tokens, in] in the number type of the computation -> [tokens, out]: x W^T + bias. An element of the result does
// not depend on the other rows. Gradients flow to x, to the master and to the bias (in its own number type).
// `given`, where defined, is the result of an earlier equal call: it is returned, and only the backward is built.
Tensor product(const Tensor& x, const Matrix& weight, const Tensor& bias = {}, const Tensor& given = {});

// The same sums without a gradient, into fp32: x W^T [rows, out] and its two transposed uses. For heads and backwards.
Tensor product_fp32(const Tensor& x, const Tensor& weight);                           // [rows, out] fp32
Tensor product_input_gradient(const Tensor& gradient, const Tensor& weight);          // [rows, in], gradient's type
void add_weight_gradient(Tensor& sum, const Tensor& gradient, const Tensor& x);       // sum fp32 [out, in] += g^T x

}  // namespace easydel::ops
