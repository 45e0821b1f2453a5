#include "easydel/ops/activation.h"

#include <ATen/ops/gelu.h>
#include <ATen/ops/gelu_backward.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/silu_backward.h>
#include <torch/csrc/autograd/custom_function.h>

#include "easydel/base/error.h"
#include "easydel/ops/gradient.h"

namespace easydel::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

Tensor value(const Tensor& x, Activation kind) {
  switch (kind) {
    case Activation::silu: return at::silu(x);
    case Activation::gelu: return at::gelu(x);
    case Activation::gelu_tanh: return at::gelu(x, "tanh");
    case Activation::quick_gelu: return x * at::sigmoid(x * 1.702);
    case Activation::relu: return at::relu(x);
    case Activation::relu_squared: return at::relu(x).square();
  }
  throw Bug("unknown activation");
}

Tensor derivative_times(const Tensor& gradient, const Tensor& x, Activation kind) {
  switch (kind) {
    case Activation::silu: return at::silu_backward(gradient, x);
    case Activation::gelu: return at::gelu_backward(gradient, x);
    case Activation::gelu_tanh: return at::gelu_backward(gradient, x, "tanh");
    case Activation::quick_gelu: {
      const Tensor s = at::sigmoid(x * 1.702);
      return gradient * (s + x * 1.702 * s * (1 - s));
    }
    case Activation::relu: return gradient * (x > 0);
    case Activation::relu_squared: return gradient * 2 * at::relu(x);
  }
  throw Bug("unknown activation");
}

struct Activate : torch::autograd::Function<Activate> {
  static Tensor forward(AutogradContext* context, const Tensor& x, int64_t kind) {
    context->save_for_backward({x});
    context->saved_data["kind"] = kind;
    return value(x, Activation(kind));
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto kind = Activation(context->saved_data["kind"].toInt());
    return {derivative_times(gradients[0], context->get_saved_variables()[0], kind), Tensor()};
  }
};

struct Gated : torch::autograd::Function<Gated> {
  static Tensor forward(AutogradContext* context, const Tensor& gate, const Tensor& up, int64_t kind) {
    context->save_for_backward({gate, up});
    context->saved_data["kind"] = kind;
    return value(gate, Activation(kind)).mul_(up);
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto kind = Activation(context->saved_data["kind"].toInt());
    const auto saved = context->get_saved_variables();
    const Tensor up_gradient = value(saved[0], kind).mul_(gradients[0]);
    return {derivative_times(gradients[0] * saved[1], saved[0], kind), up_gradient, Tensor()};
  }
};

}  // namespace

Activation activation_of(std::string_view name, const std::string& where) {
  if (name == "silu" || name == "swish") return Activation::silu;
  if (name == "gelu") return Activation::gelu;
  if (name == "gelu_new" || name == "gelu_pytorch_tanh" || name == "gelu_fast") return Activation::gelu_tanh;
  if (name == "quick_gelu") return Activation::quick_gelu;
  if (name == "relu") return Activation::relu;
  if (name == "relu2") return Activation::relu_squared;
  refuse(where, str("'", name, "' is no activation built here"),
         "known: silu, gelu, gelu_new, gelu_pytorch_tanh, gelu_fast, quick_gelu, relu, relu2");
}

Tensor activate(const Tensor& x, Activation kind) {
  return wants_gradient(x) ? Activate::apply(x, int64_t(kind)) : value(x, kind);
}

Tensor gated(const Tensor& gate, const Tensor& up, Activation kind) {
  return wants_gradient(gate, up) ? Gated::apply(gate, up, int64_t(kind)) : value(gate, kind).mul_(up);
}

}  // namespace easydel::ops
