#include "easydel/ops/weight_gradient.h"

#include <ATen/ops/empty.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/autograd/graph_task.h>

#include "easydel/kernels/product.h"
#include "easydel/kernels/product_layout.h"
#include "easydel/ops/product.h"
#include "easydel/tensor/kernels.h"

namespace easydel::ops {
namespace {

// Whether the running backward accumulates into leaves' grad(), like backward() and unlike autograd::grad().
bool fills_leaves() {
  const auto* const asked = torch::autograd::get_current_graph_task_exec_info();
  return asked && asked->empty() && !at::GradMode::is_enabled();
}

// Whether a gradient has so few columns that a panel of them is mostly padding: then its transpose is computed.
bool is_narrow(const Tensor& sum) {
  return sum.dim() == 2 && sum.size(1) < kernels::panel_columns && 4 * sum.size(1) <= sum.size(0);
}

bool can_grow(const Tensor& gradient, const Tensor& leaf) {
  return gradient.scalar_type() == at::kFloat && gradient.is_contiguous() && gradient.sizes() == leaf.sizes();
}

}  // namespace

void WeightGradient::remember(torch::autograd::AutogradContext* context, const Tensor& master,
                              const std::string& name) {
  context->saved_data["master_type" + name] = int64_t(master.scalar_type());
  // Not a saved variable: nothing reads the values, so they may be overwritten before the backward.
  if (master.is_leaf() && master.requires_grad() && master.is_cpu() && master.scalar_type() == at::kFloat)
    context->saved_data["leaf" + name] = master;
}

WeightGradient::WeightGradient(torch::autograd::AutogradContext* context, at::IntArrayRef shape,
                               const at::TensorOptions& options, const std::string& name)
    : type_(at::ScalarType(context->saved_data["master_type" + name].toInt())) {
  const auto found = context->saved_data.find("leaf" + name);
  if (found != context->saved_data.end() && fills_leaves()) {
    const Tensor leaf = found->second.toTensor(), &grown = leaf.grad();
    begun_ = grown.defined() && can_grow(grown, leaf);
    if (begun_ || !grown.defined()) leaf_ = leaf;
    if (begun_) sum_ = grown;
  }
  if (!begun_) sum_ = at::empty(shape, options.dtype(at::kFloat));
}

void WeightGradient::clear() {
  if (!begun_) sum_.zero_();
  begun_ = true;
}

void WeightGradient::add(const Tensor& gradient, const Tensor& x) {
  if (!tensor::kernels_serve(gradient, x)) {
    clear();
    return add_weight_gradient(sum_, gradient, x);
  }
  const auto product = [&](const Tensor& left, const Tensor& right, const Tensor& to, bool begun) {
    kernels::product_dw(tensor::executor(), tensor::input_of(left), tensor::input_of(right), right.size(0), to.size(0),
                        to.size(1), tensor::output_of(to), begun);
  };
  if (is_narrow(sum_)) {
    const Tensor transposed = at::empty({sum_.size(1), sum_.size(0)}, sum_.options());
    product(x, gradient, transposed, false);
    begun_ ? sum_.add_(transposed.t()) : sum_.copy_(transposed.t());
  } else {
    product(gradient, x, sum_, begun_);
  }
  begun_ = true;
}

Tensor WeightGradient::answer() {
  clear();
  if (!leaf_.defined()) return sum_.to(type_);
  if (!leaf_.grad().defined()) leaf_.mutable_grad() = sum_;
  return {};
}

}  // namespace easydel::ops
