// Products with weights in codes, for quantized nn::Weights: 8-bit or 4-bit codes that kernels multiply as they are,
// and codes of a file, whose rows are decoded when they are read. Formats, and transforms of activations before the
// product, belong to other code.
#pragma once

#include <memory>

#include "easydel/kernels/quantized.h"
#include "easydel/ops/product.h"
#include "easydel/tensor/torch.h"

namespace c10 {
struct IValue;
}

namespace easydel::ops {

// x [tokens, in] -> [tokens, out] in x's dtype, on a CPU, x fp32 or bf16: x W^T + bias. A quantized weight is
// multiplied by the loops of kernels/quantized.h (table4: fp32 keeps table and x as they are, bf16 rounds both); an
// encoded one gives the bits of its decoded values rounded to x's dtype. An element of the result does not depend on
// the other rows. Gradients flow to x, through the decoded weight rounded to x's dtype, and to the bias; the weight has
// none.
Tensor quantized_product(const Tensor& x, const Matrix& weight, const Tensor& bias = {});

// The product without autograd, in another dtype.
Tensor multiply_codes(const Tensor& x, const Matrix& weight, const Tensor& bias, at::ScalarType type);

// gradient [tokens, out] W in `type`, without autograd: the bits of multiply_back() with the weight decoded in the
// gradient's dtype. At most 2048 rows of the weight are decoded at a time.
Tensor multiply_codes_back(const Tensor& gradient, const Matrix& weight, at::ScalarType type);

// The first `n` rows of a weight in codes.
Matrix first_rows(const Matrix& weight, int64_t n);

// A weight in the saved data of an autograd node.
c10::IValue held(const Matrix& weight);
Matrix held_matrix(const c10::IValue& value);

// Rows by index, int64 [tokens] -> [tokens, in] in `type`, fp32 or bf16: those rows alone are decoded. UserError for an
// index outside the weight.
Tensor decoded_rows(const Matrix& weight, const Tensor& indices, at::ScalarType type);

// The full weight [out, in].
Tensor decoded(const Matrix& weight, at::ScalarType type);
Tensor dequantized(const kernels::QuantizedWeight& weight, at::ScalarType type);

}  // namespace easydel::ops
