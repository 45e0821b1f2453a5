// Normalisations over the last dimension. Statistics in fp32; the weight is rounded to x's number type before it is
// used, as a model of that type would hold it; gradients of weights are in the weights' own number type.
#pragma once

#include "easydel/tensor/torch.h"

namespace easydel::ops {

// weight * (x / sqrt(mean(x^2) + epsilon)), in transformers' order: the quotient is rounded to x's type, then scaled
// by (offset + weight).
Tensor rms_norm(const Tensor& x, const Tensor& weight, double epsilon, double offset = 0.0);
// (x - mean) / sqrt(variance + epsilon) * weight + bias; weight and bias may be undefined.
Tensor layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, double epsilon);

}  // namespace easydel::ops
