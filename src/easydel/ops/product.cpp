#include "easydel/ops/product.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <atomic>

#include "easydel/base/error.h"
#include "easydel/kernels/gated_product.h"
#include "easydel/kernels/grouped.h"
#include "easydel/kernels/product_plan.h"
#include "easydel/ops/gated_gradients.h"
#include "easydel/ops/gradient.h"
#include "easydel/ops/product_back.h"
#include "easydel/ops/quantized_product.h"
#include "easydel/ops/weight_gradient.h"
#include "easydel/tensor/kernels.h"

namespace easydel::ops {
namespace {

using tensor::executor;
using tensor::input_of;
using tensor::output_of;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

std::atomic<int64_t> packings = 0;

bool side_by_side(const Tensor& x) { return x.numel() == 0 || x.stride(-1) == 1; }
Tensor rows(const Tensor& x) { return side_by_side(x) ? x : x.contiguous(); }

// What the backwards of products share: gradients of weight and bias in their own dtypes.
struct Gradients {
  static void remember(AutogradContext* context, const Tensor& master, const std::optional<Tensor>& bias) {
    WeightGradient::remember(context, master);
    if (bias) context->saved_data["bias_type"] = int64_t(bias->scalar_type());
  }
  static Tensor of_weight(AutogradContext* context, const Tensor& weight, const Tensor& gradient, const Tensor& x) {
    WeightGradient dw(context, weight.sizes(), weight.options());
    dw.add(gradient, x);
    return dw.answer();
  }
  static Tensor of_bias(AutogradContext* context, const Tensor& gradient, size_t place) {
    if (!context->saved_data.count("bias_type") || !context->needs_input_grad(place)) return {};
    return gradient.sum(0, false, at::kFloat).to(at::ScalarType(context->saved_data["bias_type"].toInt()));
  }
};

struct Product : torch::autograd::Function<Product> {
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& master,
                        const std::optional<Tensor>& bias, const Matrix& weight, const std::optional<Tensor>& given) {
    context->save_for_backward({master.requires_grad() ? x : Tensor(), weight.compute.detach()});
    Gradients::remember(context, master, bias);
    return given ? given->detach() : multiply(x, weight, bias.value_or(Tensor()), x.scalar_type());
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const Tensor &x = saved[0], &weight = saved[1], gradient = rows(gradients[0]);
    Tensor dx, dw;
    if (context->needs_input_grad(0)) dx = multiply_back(gradient, weight, gradient.scalar_type());
    if (context->needs_input_grad(1)) dw = Gradients::of_weight(context, weight, gradient, x);
    return {dx, dw, Gradients::of_bias(context, gradient, 2), Tensor(), Tensor()};
  }
};

struct GatedProduct : torch::autograd::Function<GatedProduct> {
  static Tensor forward(AutogradContext* context, const Tensor& gate, const Tensor& up, const Tensor& master,
                        const std::optional<Tensor>& bias, const Matrix& weight, int64_t kind,
                        const std::optional<Tensor>& given) {
    context->save_for_backward({gate, up, weight.compute.detach()});
    context->saved_data["kind"] = kind;
    Gradients::remember(context, master, bias);
    if (given) return given->detach();
    return multiply(gated(gate, up, Activation(kind)), weight, bias.value_or(Tensor()), gate.scalar_type());
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const Tensor &gate = saved[0], &up = saved[1], &weight = saved[2], gradient = rows(gradients[0]);
    const auto kind = Activation(context->saved_data["kind"].toInt());
    const bool learns = context->needs_input_grad(2);
    GatedGradients of;
    if (context->needs_input_grad(0) || context->needs_input_grad(1))
      of = gated_gradients(multiply_back(gradient, weight, gradient.scalar_type()), gate, up, kind, learns);
    else if (learns)
      of.value = gated(gate, up, kind);
    const Tensor dw = learns ? Gradients::of_weight(context, weight, gradient, of.value) : Tensor();
    return {of.gate, of.up, dw, Gradients::of_bias(context, gradient, 3), Tensor(), Tensor(), Tensor()};
  }
};

// A bias in the form that the kernels add.
struct Bias {
  Bias(const Tensor& bias, const Tensor& w)
      : own(bias.defined() ? bias.detach().to(w.scalar_type()).to(at::kFloat).contiguous() : Tensor()) {}
  const float* data() const { return own.defined() ? own.const_data_ptr<float>() : nullptr; }

  Tensor own;
};

kernels::AccumulationOrder order_of(const Tensor& w) {
  return w.scalar_type() == at::kFloat ? kernels::AccumulationOrder::fp32_chain : kernels::bf16_order();
}

// multiply(gated(gate, up)) in gate's dtype.
Tensor multiply_gated(const Tensor& gate, const Tensor& up, Activation kind, const Matrix& weight, const Tensor& bias) {
  const auto kernel = weight.packed ? gated_kernel(gate, up, kind) : std::nullopt;
  if (!kernel) return multiply(gated(gate, up, kind), weight, bias, gate.scalar_type());
  const Tensor y = at::empty({gate.size(0), weight.out()}, gate.options());
  const Bias added(bias, weight.compute);
  const Tensor opens = rows(gate), passes = rows(up);
  kernels::gated_product(executor(), *weight.packed, *kernel, input_of(opens), input_of(passes), gate.size(0),
                         output_of(y), added.data(), order_of(weight.compute));
  return y;
}

void check_shapes(const Tensor& x, const Matrix& weight) {
  check(x.dim() == 2 && x.size(1) == weight.in(), "product: x is ", x.sizes(), ", the weight [", weight.out(), ", ",
        weight.in(), "]");
}

}  // namespace

int64_t packed_weights() { return packings; }

std::shared_ptr<const kernels::PackedWeight> pack(const Tensor& weight) {
  if (!tensor::kernels_serve(weight)) return nullptr;
  ++packings;
  return std::make_shared<kernels::PackedWeight>(kernels::pack(
      executor(), input_of(weight), weight.size(0), weight.size(1), tensor::kernel_dtype(weight.scalar_type())));
}

Tensor multiply(const Tensor& x, const Matrix& weight, const Tensor& bias, at::ScalarType type) {
  if (weight.in_codes()) return multiply_codes(x, weight, bias, type);
  const auto& w = weight.compute;
  if (!tensor::kernels_serve(x, w)) {
    // A bias is rounded to x's dtype, as a model of that dtype would store it.
    const auto own = bias.defined() ? std::optional<Tensor>(bias.to(x.scalar_type())) : std::nullopt;
    return at::linear(x, w, own).to(type);
  }
  const Tensor y = at::empty({x.size(0), w.size(0)}, x.options().dtype(type));
  const Bias added(bias, w);
  const auto order = order_of(w);
  const Tensor from = rows(x);
  if (weight.packed) {
    kernels::product(executor(), *weight.packed, input_of(from), x.size(0), output_of(y), added.data(), order);
  } else {
    // A weight that is used once: each panel is packed when it is multiplied.
    const int64_t begin[] = {0, x.size(0)};
    const Tensor plain = rows(w);
    kernels::grouped_product(
        executor(), begin,
        {.n = w.size(0), .k = w.size(1), .rows = input_of(plain), .dtype = tensor::kernel_dtype(w.scalar_type())},
        input_of(from), output_of(y), added.data(), order);
  }
  return y;
}

Tensor multiply_back(const Tensor& gradient, const Tensor& weight, at::ScalarType type) {
  if (!tensor::kernels_serve(gradient, weight)) return at::mm(gradient.to(weight.scalar_type()), weight).to(type);
  const Tensor w = weight.detach();
  const auto rows = [&](int64_t first, int64_t count) { return w.narrow(0, first, count); };
  return multiply_back(gradient, WeightRows{w.size(0), w.size(1), w.scalar_type(), rows}, type);
}

Tensor multiply_back(const Tensor& gradient, const Matrix& weight, at::ScalarType type) {
  return weight.in_codes() ? multiply_codes_back(gradient, weight, type)
                           : multiply_back(gradient, weight.compute, type);
}

Tensor multiply_back(const Tensor& gradient, const WeightRows& weight, at::ScalarType type) {
  const int64_t m = gradient.size(0), n = weight.n, k = weight.k;
  const Tensor dx = at::empty({m, k}, gradient.options().dtype(type));
  const auto add = [&](const Tensor& of, int64_t first, int64_t count, const Tensor& to, bool begun) {
    const Tensor w = weight.rows(first, count);
    kernels::product_dx(executor(), input_of(of), input_of(w), of.size(0), count, k, output_of(to), begun);
  };
  // product_dx() itself adds up a result in fp32 in such stretches.
  const bool narrow = weight.type == at::kBFloat16, adds_up = !narrow && type == at::kFloat;
  const kernels::DxPlan plan = narrow ? kernels::plan_dx_of_bf16(n) : kernels::plan_dx_of_rows(n);
  if (plan.terms_per_stretch == n || (!narrow && !adds_up)) {
    add(gradient, 0, n, dx, false);
    return dx;
  }
  const int64_t slab = adds_up ? m : std::min(m, plan.rows_per_slab);
  const Tensor sums = adds_up ? dx : at::empty({slab, k}, dx.options().dtype(at::kFloat));
  for (int64_t row = 0; row < m; row += slab) {
    const int64_t rows = std::min(slab, m - row);
    const Tensor sum = sums.narrow(0, 0, rows), of = gradient.narrow(0, row, rows);
    for (int64_t i = 0; i < n; i += plan.terms_per_stretch) {
      const int64_t count = std::min(plan.terms_per_stretch, n - i);
      add(of.narrow(1, i, count), i, count, sum, i > 0);
    }
    if (!adds_up) dx.narrow(0, row, rows).copy_(sum);
  }
  return dx;
}

void add_weight_gradient(const Tensor& sum, const Tensor& gradient, const Tensor& x) {
  if (tensor::kernels_serve(gradient, x))
    kernels::product_dw(executor(), input_of(gradient), input_of(x), x.size(0), gradient.size(1), x.size(1),
                        output_of(sum), true);
  else
    sum.addmm_(gradient.to(at::kFloat).t(), x.to(at::kFloat));
}

Tensor product(const Tensor& x, const Matrix& weight, const Tensor& bias, const Tensor& given) {
  check_shapes(x, weight);
  if (weight.in_codes() && wants_gradient(x, bias)) return quantized_product(x, weight, bias);
  if (!wants_gradient(x, weight.master, bias))
    return given.defined() ? given : multiply(x, weight, bias, x.scalar_type());
  return Product::apply(x, weight.master, argument(bias), weight, argument(given));
}

Tensor gated_product(const Tensor& gate, const Tensor& up, Activation kind, const Matrix& weight, const Tensor& bias,
                     const Tensor& given) {
  check_shapes(gate, weight);
  if (weight.in_codes()) return product(gated(gate, up, kind), weight, bias, given);
  if (!wants_gradient(gate, up, weight.master, bias))
    return given.defined() ? given : multiply_gated(gate, up, kind, weight, bias);
  return GatedProduct::apply(gate, up, weight.master, argument(bias), weight, int64_t(kind), argument(given));
}

}  // namespace easydel::ops
