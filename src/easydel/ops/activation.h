// Activations of feed-forward blocks, by Hugging Face's names.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "easydel/tensor/torch.h"

namespace easydel::ops {

enum class Activation : uint8_t {
  silu,
  gelu,
  gelu_tanh,
  quick_gelu,
  relu,
  relu_squared,
  relu6,
  leaky_relu,
  sigmoid,
  tanh,
  mish,
  identity
};

// "silu" (= "swish"), "gelu" (= "gelu_python"), "gelu_new" (= "gelu_pytorch_tanh", "gelu_fast", "gelu_python_tanh",
// "gelu_accurate"), "quick_gelu", "relu", "relu2", "relu6", "leaky_relu", "sigmoid", "tanh", "mish", "linear".
// UserError "where: ..." for another.
Activation activation_of(std::string_view name, const std::string& where);

Tensor activate(const Tensor& x, Activation kind);
// An activation with learned numbers (arXiv 2411.13010), each of one element: with p = softplus(alpha_p) and
// n = beta + softplus(alpha_n), p x^2 + beta x above 0, else n (expm1(min(x, epsilon)) - x) + beta x.
Tensor xielu(const Tensor& x, const Tensor& alpha_p, const Tensor& alpha_n, const Tensor& beta, const Tensor& epsilon);
// activate(gate) * up.
Tensor gated(const Tensor& gate, const Tensor& up, Activation kind);
// Its gradients of gate and up, for ops that hold it inside themselves.
std::pair<Tensor, Tensor> gated_backward(const Tensor& gradient, const Tensor& gate, const Tensor& up, Activation kind);

}  // namespace easydel::ops
