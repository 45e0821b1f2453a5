// Activations of feed-forward blocks, by Hugging Face's names.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "easydel/tensor/torch.h"

namespace easydel::ops {

enum class Activation : uint8_t { silu, gelu, gelu_tanh, quick_gelu, relu, relu_squared };

// "silu" (= "swish"), "gelu", "gelu_new" (= "gelu_pytorch_tanh", "gelu_fast"), "quick_gelu", "relu", "relu2";
// UserError "where: ..." for another.
Activation activation_of(std::string_view name, const std::string& where);

Tensor activate(const Tensor& x, Activation kind);
// activate(gate) * up.
Tensor gated(const Tensor& gate, const Tensor& up, Activation kind);
// Its gradients of gate and up, for ops that hold it inside themselves.
std::pair<Tensor, Tensor> gated_backward(const Tensor& gradient, const Tensor& gate, const Tensor& up, Activation kind);

}  // namespace easydel::ops
