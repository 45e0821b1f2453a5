#include "easydel/ops/product.h"

#include <ATen/ops/linear.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/custom_function.h>

#include "easydel/base/error.h"
#include "easydel/ops/gradient.h"

namespace easydel::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

Tensor forward_product(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  return at::linear(x, weight, bias.defined() ? std::optional<Tensor>(bias.to(x.scalar_type())) : std::nullopt);
}

struct Product : torch::autograd::Function<Product> {
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& master, const std::optional<Tensor>& bias,
                        const Tensor& compute, const std::optional<Tensor>& given) {
    context->save_for_backward({master.requires_grad() ? x : Tensor(), compute});
    context->saved_data["master_type"] = int64_t(master.scalar_type());
    if (bias) context->saved_data["bias_type"] = int64_t(bias->scalar_type());
    return given ? given->detach() : forward_product(x, compute, bias.value_or(Tensor()));
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const Tensor &x = saved[0], &weight = saved[1], gradient = gradients[0].contiguous();
    Tensor dx, dw, db;
    if (context->needs_input_grad(0)) dx = product_input_gradient(gradient, weight);
    if (context->needs_input_grad(1)) {
      dw = at::zeros(weight.sizes(), weight.options().dtype(at::kFloat));
      add_weight_gradient(dw, gradient, x);
      dw = dw.to(at::ScalarType(context->saved_data["master_type"].toInt()));
    }
    if (context->saved_data.count("bias_type") && context->needs_input_grad(2))
      db = gradient.sum(0, false, at::kFloat).to(at::ScalarType(context->saved_data["bias_type"].toInt()));
    return {dx, dw, db, Tensor(), Tensor()};
  }
};

}  // namespace

Tensor product(const Tensor& x, const Matrix& weight, const Tensor& bias, const Tensor& given) {
  check(x.dim() == 2 && x.size(1) == weight.compute.size(1), "product: x is ", x.sizes(), ", the weight ",
        weight.compute.sizes());
  if (!wants_gradient(x, weight.master, bias)) return given.defined() ? given : forward_product(x, weight.compute, bias);
  return Product::apply(x, weight.master, argument(bias), weight.compute.detach(), argument(given));
}

Tensor product_fp32(const Tensor& x, const Tensor& weight) { return at::linear(x, weight).to(at::kFloat); }

Tensor product_input_gradient(const Tensor& gradient, const Tensor& weight) { return at::mm(gradient, weight); }

void add_weight_gradient(Tensor& sum, const Tensor& gradient, const Tensor& x) {
  if (x.scalar_type() == at::kFloat)
    sum.addmm_(gradient.t(), x);
  else
    sum.addmm_(gradient.to(at::kFloat).t(), x.to(at::kFloat));
}

}  // namespace easydel::ops
