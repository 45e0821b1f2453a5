// Activations of feed-forward blocks, by Hugging Face's names.
#pragma once

#include <string_view>

#include "easydel/tensor/torch.h"

namespace easydel::ops {

enum class Activation : uint8_t { silu, gelu, gelu_tanh, quick_gelu, relu, relu_squared };

// "silu" (= "swish"), "gelu", "gelu_new" (= "gelu_pytorch_tanh", "gelu_fast"), "quick_gelu", "relu", "relu2";
// UserError "where: ..." for another.
Activation activation_of(std::string_view name, const std::string& where);

Tensor activate(const Tensor& x, Activation kind);
// activate(gate) * up, without keeping the product's factors twice.
Tensor gated(const Tensor& gate, const Tensor& up, Activation kind);

}  // namespace easydel::ops
