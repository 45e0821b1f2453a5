// Normalisations over the last dimension. Statistics in fp32; the weight is rounded to x's number type before it is
// used, as a model of that type would hold it; gradients of weights are in the weights' own number type.
#pragma once

#include "easydel/tensor/torch.h"

namespace easydel::ops {

// weight * (x / sqrt(mean(x^2) + epsilon)); the weight may be undefined. In transformers' order: the quotient is
// rounded to x's type and then scaled; with an offset, or where `wide`, it is scaled by (offset + weight) in fp32 and
// then rounded.
Tensor rms_norm(const Tensor& x, const Tensor& weight, double epsilon, double offset = 0.0, bool wide = false);
// (x - mean) / sqrt(variance + epsilon) * weight + bias; weight and bias may be undefined.
Tensor layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, double epsilon);

// The same of x + residual, in one sweep where kernels serve; the bits and gradients of the two steps.
struct NormOfSum {
  Tensor sum, norm;
};
NormOfSum add_rms_norm(const Tensor& x, const Tensor& residual, const Tensor& weight, double epsilon,
                       double offset = 0.0, bool wide = false);
NormOfSum add_layer_norm(const Tensor& x, const Tensor& residual, const Tensor& weight, const Tensor& bias,
                         double epsilon);

}  // namespace easydel::ops
