// Products with weights of 8-bit or 4-bit codes, for quantized nn::Weights. Formats, and transforms of activations
// before the product, belong to other code.
#pragma once

#include <memory>

#include "easydel/kernels/quantized.h"
#include "easydel/tensor/torch.h"

namespace easydel::ops {

// x [tokens, in] -> [tokens, out] in x's dtype, on a CPU, x fp32 or bf16: x W^T + bias by the loops of
// kernels/quantized.h (table4: fp32 keeps table and x as they are, bf16 rounds both). An element of the result does not
// depend on the other rows. Gradients flow to x, through the dequantized weight rounded to x's dtype, and to the bias;
// the weight has none.
Tensor quantized_product(const Tensor& x, const std::shared_ptr<const kernels::QuantizedWeight>& weight,
                         const Tensor& bias = {});

// The product without autograd, in another dtype.
Tensor multiply_quantized(const Tensor& x, const kernels::QuantizedWeight& weight, const Tensor& bias,
                          at::ScalarType type);

// The full weight [out, in].
Tensor dequantized(const kernels::QuantizedWeight& weight, at::ScalarType type);

}  // namespace easydel::ops
