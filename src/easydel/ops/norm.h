// Normalizations over the last dimension. Statistics are fp32; the weight is rounded to x's dtype before it is used, as
// a model in that dtype would store it; gradients of weights have the weights' dtype.
#pragma once

#include "easydel/tensor/torch.h"

namespace easydel::ops {

// weight * (x / sqrt(mean(x^2) + epsilon)); the weight may be undefined. As in transformers, the quotient is rounded
// to x's dtype and then scaled; with an offset, or if `wide`, it is scaled by (offset + weight) in fp32 and then
// rounded.
Tensor rms_norm(const Tensor& x, const Tensor& weight, double epsilon, double offset = 0.0, bool wide = false);
// (x - mean) / sqrt(variance + epsilon) * weight + bias; weight and bias may be undefined.
Tensor layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, double epsilon);

// The norm of x + residual, in one sweep if kernels support it, with the bits and gradients of the two steps.
struct NormOfSum {
  Tensor sum, norm;
};
NormOfSum add_rms_norm(const Tensor& x, const Tensor& residual, const Tensor& weight, double epsilon,
                       double offset = 0.0, bool wide = false);
NormOfSum add_layer_norm(const Tensor& x, const Tensor& residual, const Tensor& weight, const Tensor& bias,
                         double epsilon);

}  // namespace easydel::ops
