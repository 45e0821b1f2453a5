#include "easydel/ops/exponential.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/exp.h>
#include <torch/csrc/autograd/custom_function.h>

#include "easydel/kernels/fused.h"
#include "easydel/ops/gradient.h"
#include "easydel/tensor/kernels.h"

namespace easydel::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

Tensor exponential_forward(const Tensor& x) {
  if (!tensor::kernels_serve(x) || x.numel() == 0) return at::exp(x);
  const Tensor y = at::empty(x.sizes(), x.options());
  const int64_t n = x.dim() > 0 ? x.size(-1) : 1, rows = x.numel() / n;
  kernels::activate(tensor::executor(), kernels::Activation::exp, tensor::input_of(x.contiguous().view({rows, n})), {},
                    rows, n, tensor::output_of(y.view({rows, n})));
  return y;
}

struct Exponential : torch::autograd::Function<Exponential> {
  static Tensor forward(AutogradContext* context, const Tensor& x) {
    Tensor y = exponential_forward(x);
    context->save_for_backward({y});
    return y;
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    return {gradients[0] * context->get_saved_variables()[0]};
  }
};

}  // namespace

Tensor exponential(const Tensor& x) { return wants_gradient(x) ? Exponential::apply(x) : exponential_forward(x); }

}  // namespace easydel::ops
