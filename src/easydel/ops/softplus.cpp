#include "easydel/ops/softplus.h"

#include <ATen/ops/empty_like.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/softplus.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <cmath>

#include "easydel/ops/gradient.h"
#include "easydel/tensor/kernels.h"

namespace easydel::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

Tensor softplus_forward(const Tensor& given) {
  if (!given.is_cpu()) return at::softplus(given);
  const Tensor x = given.contiguous(), y = at::empty_like(x);
  const float* const from = x.const_data_ptr<float>();
  float* const to = y.mutable_data_ptr<float>();
  constexpr int64_t together = 2048;
  constexpr float linear = 20;  // e^-20 is lost in fp32
  const int64_t count = x.numel();
  tensor::executor().run((count + together - 1) / together, [&](int64_t task) {
    for (int64_t i = task * together; i < std::min(count, (task + 1) * together); ++i)
      to[i] = from[i] > linear ? from[i] : float(std::log1p(std::exp(double(from[i]))));
  });
  return y;
}

struct Softplus : torch::autograd::Function<Softplus> {
  static Tensor forward(AutogradContext* context, const Tensor& x) {
    context->save_for_backward({x});
    return softplus_forward(x);
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    return {gradients[0] * at::sigmoid(context->get_saved_variables()[0])};
  }
};

}  // namespace

Tensor softplus(const Tensor& x) {
  const Tensor wide = x.to(at::kFloat);
  return wants_gradient(wide) ? Softplus::apply(wide) : softplus_forward(wide);
}

}  // namespace easydel::ops
