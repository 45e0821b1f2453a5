// Products with weights of bytes or four-bit codes: what a quantized nn::Weight multiplies by. The formats themselves,
// and what is done to activations before, are others' business.
#pragma once

#include <memory>

#include "easydel/kernels/quantized.h"
#include "easydel/tensor/torch.h"

namespace easydel::ops {

// x [tokens, in] -> [tokens, out] in x's number type, on a CPU, x fp32 or bf16: x W^T + bias by the loops of
// kernels/quantized.h (table4: in fp32 keeping table and x as they are, in bf16 rounding both). An element of the
// result does not depend on the other rows. Gradients flow to x, through the dequantized weight rounded to x's number
// type, and to the bias; the weight has none.
Tensor quantized_product(const Tensor& x, const std::shared_ptr<const kernels::QuantizedWeight>& weight,
                         const Tensor& bias = {});

// The sums themselves, in another number type and without a gradient.
Tensor multiply_quantized(const Tensor& x, const kernels::QuantizedWeight& weight, const Tensor& bias,
                          at::ScalarType type);

// The weight [out, in] in full.
Tensor dequantized(const kernels::QuantizedWeight& weight, at::ScalarType type);

}  // namespace easydel::ops
