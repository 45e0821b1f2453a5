// Activations of feed-forward blocks, by Hugging Face's names.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "easydel/base/error.h"
#include "easydel/tensor/torch.h"

namespace easydel::ops {

enum class Activation : uint8_t {
  silu,
  gelu,
  gelu_tanh,
  gelu_clipped,  // at +-10
  quick_gelu,
  relu,
  relu_squared,
  relu6,
  leaky_relu,
  sigmoid,
  tanh,
  mish,
  hardswish,
  laplace,  // of MEGA (arXiv 2209.10655)
  sqrt_softplus,
  identity
};

// By transformers' name; several names may mean the same one. Throws UserError "where: ..." for an unknown name.
Activation activation_of(std::string_view name, const Where& where);

Tensor activate(const Tensor& x, Activation kind);
// An activation with learned parameters of one element each (arXiv 2411.13010): with p = softplus(alpha_p) and n = beta
// + softplus(alpha_n), p x^2 + beta x for x > 0, otherwise n (expm1(min(x, epsilon)) - x) + beta x.
Tensor xielu(const Tensor& x, const Tensor& alpha_p, const Tensor& alpha_n, const Tensor& beta, const Tensor& epsilon);
// activate(gate) * up.
Tensor gated(const Tensor& gate, const Tensor& up, Activation kind);

}  // namespace easydel::ops
