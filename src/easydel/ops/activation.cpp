#include "easydel/ops/activation.h"

#include <ATen/ops/clamp.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/erf.h>
#include <ATen/ops/expm1.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/gelu_backward.h>
#include <ATen/ops/hardswish.h>
#include <ATen/ops/hardswish_backward.h>
#include <ATen/ops/leaky_relu.h>
#include <ATen/ops/minimum.h>
#include <ATen/ops/mish.h>
#include <ATen/ops/mish_backward.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/silu_backward.h>
#include <ATen/ops/softplus.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/where.h>
#include <torch/csrc/autograd/custom_function.h>

#include <cmath>
#include <numbers>
#include <vector>

#include "easydel/base/error.h"
#include "easydel/base/names.h"
#include "easydel/kernels/fused.h"
#include "easydel/ops/gated_gradients.h"
#include "easydel/ops/gradient.h"
#include "easydel/ops/softplus.h"
#include "easydel/tensor/kernels.h"

namespace easydel::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Mean and deviation of the normal distribution whose cumulative distribution function "laplace" is.
constexpr double laplace_mean = 0.707107, laplace_deviation = 0.282095;

constexpr std::pair<std::string_view, Activation> activation_names[] = {
    {"silu", Activation::silu},
    {"swish", Activation::silu},
    {"gelu", Activation::gelu},
    {"gelu_python", Activation::gelu},
    {"gelu_10", Activation::gelu_clipped},
    {"gelu_new", Activation::gelu_tanh},
    {"gelu_pytorch_tanh", Activation::gelu_tanh},
    {"gelu_fast", Activation::gelu_tanh},
    {"gelu_python_tanh", Activation::gelu_tanh},
    {"gelu_accurate", Activation::gelu_tanh},
    {"quick_gelu", Activation::quick_gelu},
    {"relu", Activation::relu},
    {"relu2", Activation::relu_squared},
    {"relu6", Activation::relu6},
    {"leaky_relu", Activation::leaky_relu},
    {"sigmoid", Activation::sigmoid},
    {"tanh", Activation::tanh},
    {"mish", Activation::mish},
    {"hardswish", Activation::hardswish},
    {"laplace", Activation::laplace},
    {"sqrtsoftplus", Activation::sqrt_softplus},
    {"linear", Activation::identity},
};

Tensor value(const Tensor& x, Activation kind);

Tensor root_of_softplus(const Tensor& x) {
  if (x.scalar_type() == at::kDouble) return at::softplus(x).sqrt();
  return ops::softplus(x).sqrt().to(x.scalar_type());
}

// Works on any device. On a CPU the last bit of what has a kernel, too, would depend on an element's place here,
// because ATen computes the ends of some loops differently.
Tensor plain_value(const Tensor& x, Activation kind) {
  switch (kind) {
    case Activation::silu:
      return at::silu(x);
    case Activation::gelu:
      return at::gelu(x);
    case Activation::gelu_tanh:
      return at::gelu(x, "tanh");
    case Activation::relu:
      return at::relu(x);
    case Activation::relu_squared:
      return at::relu(x).square();
    case Activation::relu6:
      return at::clamp(x, 0, 6);
    case Activation::leaky_relu:
      return at::leaky_relu(x);
    case Activation::sigmoid:
      return at::sigmoid(x);
    case Activation::tanh:
      return at::tanh(x);
    case Activation::mish:
      return at::mish(x);
    case Activation::hardswish:
      return at::hardswish(x);
    case Activation::laplace:
      return 0.5 * (1.0 + at::erf((x - laplace_mean) / (laplace_deviation * std::numbers::sqrt2)));
    case Activation::sqrt_softplus:
      return root_of_softplus(x);
    case Activation::identity:
      return x.clone();
    case Activation::gelu_clipped:  // computed from other kinds by value()
    case Activation::quick_gelu:
      break;
  }
  throw Bug("unknown activation");
}

Tensor plain_derivative_times(const Tensor& gradient, const Tensor& x, Activation kind) {
  switch (kind) {
    case Activation::silu:
      return at::silu_backward(gradient, x);
    case Activation::gelu:
      return at::gelu_backward(gradient, x);
    case Activation::gelu_tanh:
      return at::gelu_backward(gradient, x, "tanh");
    case Activation::relu:
      return gradient * (x > 0);
    case Activation::relu_squared:
      return gradient * 2 * at::relu(x);
    case Activation::relu6:
      return gradient * (x > 0).logical_and(x < 6);
    case Activation::leaky_relu:
      return gradient * at::where(x > 0, at::scalar_tensor(1.0, x.options()), at::scalar_tensor(0.01, x.options()));
    case Activation::sigmoid: {
      const Tensor s = at::sigmoid(x);
      return gradient * s * (1 - s);
    }
    case Activation::tanh:
      return gradient * (1 - at::tanh(x).square());
    case Activation::mish:
      return at::mish_backward(gradient, x);
    case Activation::hardswish:
      return at::hardswish_backward(gradient, x);
    case Activation::laplace: {
      const Tensor from_mean = (x - laplace_mean) / laplace_deviation;
      return gradient * (-0.5 * from_mean.square()).exp() / (laplace_deviation * std::sqrt(2.0 * std::numbers::pi));
    }
    case Activation::sqrt_softplus:
      return gradient * value(x, Activation::sigmoid) / (2.0 * root_of_softplus(x));
    case Activation::identity:
      return gradient;
    case Activation::gelu_clipped:  // computed from other kinds by derivative_times()
    case Activation::quick_gelu:
      break;
  }
  throw Bug("unknown activation");
}

// The kernel's name for an activation, if it has one and can process these tensors, or contiguous copies of them: the
// layout never decides which code computes.
template <class... Tensors>
std::optional<kernels::Activation> kernel_of(Activation kind, const Tensors&... tensors) {
  if (!tensor::kernels_serve(tensors...)) return std::nullopt;
  switch (kind) {
    case Activation::silu:
      return kernels::Activation::silu;
    case Activation::gelu:
      return kernels::Activation::gelu;
    case Activation::gelu_tanh:
      return kernels::Activation::gelu_tanh;
    case Activation::sigmoid:
      return kernels::Activation::sigmoid;
    case Activation::tanh:
      return kernels::Activation::tanh;
    case Activation::mish:
      return kernels::Activation::mish;
    default:
      return std::nullopt;
  }
}

// Rows and columns by which the kernels distribute work; short rows are merged into one.
std::pair<int64_t, int64_t> rows_of(const Tensor& x) {
  constexpr int64_t short_row = 64;
  const int64_t n = x.dim() > 0 ? x.size(-1) : 1;
  return n < short_row ? std::pair(int64_t{1}, x.numel()) : std::pair(x.numel() / n, n);
}

Tensor value(const Tensor& x, Activation kind) {
  if (kind == Activation::quick_gelu) return x * value(x * 1.702, Activation::sigmoid);
  if (kind == Activation::gelu_clipped) return at::clamp(value(x, Activation::gelu), -10, 10);
  const auto kernel = kernel_of(kind, x);
  if (!kernel || x.numel() == 0) return plain_value(x, kind);
  const auto [rows, n] = rows_of(x);
  const Tensor y = at::empty(x.sizes(), x.options());
  kernels::activate(tensor::executor(), *kernel, tensor::input_of(x.contiguous().view({rows, n})), {}, rows, n,
                    tensor::output_of(y.view({rows, n})));
  return y;
}

Tensor derivative_times(const Tensor& gradient, const Tensor& x, Activation kind) {
  if (kind == Activation::quick_gelu) {
    const Tensor s = value(x * 1.702, Activation::sigmoid);
    return gradient * (s + x * 1.702 * s * (1 - s));
  }
  if (kind == Activation::gelu_clipped)  // it never comes near -10
    return derivative_times(gradient, x, Activation::gelu) * (value(x, Activation::gelu) < 10);
  const auto kernel = kernel_of(kind, gradient, x);
  if (!kernel || x.numel() == 0) return plain_derivative_times(gradient, x, kind);
  const auto [rows, n] = rows_of(x);
  const Tensor out = at::empty(x.sizes(), x.options());
  kernels::activate_backward(tensor::executor(), *kernel, tensor::input_of(gradient.contiguous().view({rows, n})),
                             tensor::input_of(x.contiguous().view({rows, n})), {}, rows, n,
                             tensor::output_of(out.view({rows, n})), {});
  return out;
}

Tensor gated_value(const Tensor& gate, const Tensor& up, Activation kind) {
  const auto kernel = gated_kernel(gate, up, kind);
  if (!kernel) return value(gate, kind).mul_(up);
  const Tensor y = at::empty(gate.sizes(), gate.options());
  kernels::activate(tensor::executor(), *kernel, tensor::input_of(gate.contiguous()), tensor::input_of(up.contiguous()),
                    gate.size(0), gate.size(1), tensor::output_of(y));
  return y;
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
    return gated_value(gate, up, Activation(kind));
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto kind = Activation(context->saved_data["kind"].toInt());
    const auto saved = context->get_saved_variables();
    const GatedGradients all = gated_gradients(gradients[0], saved[0], saved[1], kind, false);
    return {all.gate, all.up, Tensor()};
  }
};

}  // namespace

std::optional<kernels::Activation> gated_kernel(const Tensor& gate, const Tensor& up, Activation kind) {
  return gate.dim() == 2 ? kernel_of(kind, gate, up) : std::nullopt;
}

Activation activation_of(std::string_view name, const Where& where) {
  std::vector<std::string> known;
  for (const auto& [word, kind] : activation_names) {
    if (word == name) return kind;
    known.emplace_back(word);
  }
  refuse(where, str("'", name, "' is not a known activation"), str("known: ", join(known, ", ")));
}

GatedGradients gated_gradients(Tensor gradient, const Tensor& gate, const Tensor& up, Activation kind,
                               bool wants_value) {
  const auto kernel = kernel_of(kind, gradient, gate, up);
  if (!kernel || gate.dim() != 2) {
    const Tensor activated = value(gate, kind);
    return {derivative_times(gradient * up, gate, kind), gradient * activated, wants_value ? activated * up : Tensor()};
  }
  gradient = gradient.contiguous();
  GatedGradients out{at::empty(gate.sizes(), gate.options()), at::empty(up.sizes(), up.options()), {}};
  if (wants_value) out.value = gradient;
  kernels::activate_backward(tensor::executor(), *kernel, tensor::input_of(gradient),
                             tensor::input_of(gate.contiguous()), tensor::input_of(up.contiguous()), gate.size(0),
                             gate.size(1), tensor::output_of(out.gate), tensor::output_of(out.up),
                             tensor::output_of(out.value));
  return out;
}

Tensor activate(const Tensor& x, Activation kind) {
  return wants_gradient(x) ? Activate::apply(x, int64_t(kind)) : value(x, kind);
}

Tensor xielu(const Tensor& x, const Tensor& alpha_p, const Tensor& alpha_n, const Tensor& beta, const Tensor& epsilon) {
  const Tensor wide = x.to(at::kFloat), b = beta.to(at::kFloat);
  const Tensor p = at::softplus(alpha_p.to(at::kFloat)), n = b + at::softplus(alpha_n.to(at::kFloat));
  const Tensor below = (at::expm1(at::minimum(wide, epsilon.to(at::kFloat))) - wide) * n + wide * b;
  return at::where(wide > 0, wide * wide * p + wide * b, below).to(x.scalar_type());
}

Tensor gated(const Tensor& gate, const Tensor& up, Activation kind) {
  return wants_gradient(gate, up) ? Gated::apply(gate, up, int64_t(kind)) : gated_value(gate, up, kind);
}

}  // namespace easydel::ops
