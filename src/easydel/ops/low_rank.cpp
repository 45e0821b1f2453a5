#include "easydel/ops/low_rank.h"

#include <ATen/ops/sub.h>
#include <torch/csrc/autograd/custom_function.h>

#include <cmath>

#include "easydel/base/error.h"
#include "easydel/kernels/accumulation_order.h"
#include "easydel/kernels/product_layout.h"
#include "easydel/ops/gradient.h"
#include "easydel/ops/weight_gradient.h"
#include "easydel/tensor/kernels.h"

namespace easydel::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Whether rows x w^T is computed as (w rows^T)^T: by pairs, few rows of a weight are multiplied with the other side
// read where it is, without packing it and with less padding. An element is the same sum.
bool swaps(const Tensor& rows, const Tensor& w) {
  return rows.scalar_type() == at::kBFloat16 && w.scalar_type() == at::kBFloat16 && tensor::kernels_serve(rows, w) &&
         kernels::bf16_order() == kernels::AccumulationOrder::bf16_pairs && w.size(0) <= kernels::panel_columns &&
         4 * w.size(0) <= rows.size(0) && w.size(1) % kernels::k_block == 0;
}

// rows [tokens, k] x w [r, k]^T, without a gradient.
Tensor narrow_product(const Tensor& rows, const Matrix& w) {
  if (!swaps(rows, w.compute)) return multiply(rows, w, {}, rows.scalar_type());
  const Tensor of = rows.detach();
  return multiply(w.compute, {of, of, nullptr}, {}, rows.scalar_type()).t().contiguous();
}

struct Sum {
  Tensor low, out;  // x A^T, and the result
};

// y - |scale| * p, where p is of the opposite sign: subtracting +0 leaves every number as it is, while adding it would
// make +0 of -0.
Sum sum_of(const Tensor& y, const Tensor& x, const Matrix& a, const Matrix& b, double scale) {
  const Tensor low = narrow_product(x, a);
  Tensor product = multiply(scale < 0 ? low : low.neg(), b, {}, x.scalar_type());
  if (product.scalar_type() != y.scalar_type()) return {low, at::sub(y, product, std::fabs(scale))};
  at::sub_out(product, y, product, std::fabs(scale));
  return {low, product};
}

// gradient [tokens, out] x b [out, r].
Tensor product_with(const Tensor& gradient, const Tensor& b) {
  const Tensor transposed = b.t().contiguous();
  if (!swaps(gradient, transposed)) return multiply_back(gradient, b, gradient.scalar_type());
  return narrow_product(gradient, {transposed, transposed, nullptr});
}

struct LowRank : torch::autograd::Function<LowRank> {
  static Tensor forward(AutogradContext* context, const Tensor& y, const Tensor& x, const Tensor& master_a,
                        const Tensor& master_b, const Matrix& a, const Matrix& b, double scale) {
    const Sum sum = sum_of(y, x, a, b, scale);
    context->save_for_backward({master_a.requires_grad() ? x : Tensor(), master_b.requires_grad() ? sum.low : Tensor(),
                                a.compute.detach(), b.compute.detach()});
    context->saved_data["scale"] = scale;
    WeightGradient::remember(context, master_a, "a");
    WeightGradient::remember(context, master_b, "b");
    return sum.out;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const Tensor &x = saved[0], &low = saved[1], &a = saved[2], &b = saved[3];
    const Tensor gradient = gradients[0].stride(-1) == 1 ? gradients[0] : gradients[0].contiguous();
    const double scale = context->saved_data["scale"].toDouble();
    Tensor dx, da, db;
    if (context->needs_input_grad(1) || context->needs_input_grad(2)) {
      const Tensor of_low = product_with(gradient, b).mul_(scale);
      if (context->needs_input_grad(1)) dx = multiply_back(of_low, a, gradient.scalar_type());
      if (context->needs_input_grad(2)) {
        WeightGradient sum(context, a.sizes(), a.options(), "a");
        sum.add(of_low, x);
        da = sum.answer();
      }
    }
    if (context->needs_input_grad(3)) {
      WeightGradient sum(context, b.sizes(), b.options(), "b");
      sum.add(gradient, low * scale);
      db = sum.answer();
    }
    return {gradients[0], dx, da, db, Tensor(), Tensor(), Tensor()};
  }
};

}  // namespace

Tensor add_low_rank(const Tensor& y, const Tensor& x, const Matrix& a, const Matrix& b, double scale) {
  check(!a.in_codes() && !b.in_codes(), "low rank: an adapter's weights are codes");
  check(x.dim() == 2 && x.size(1) == a.in() && a.out() == b.in() && y.size(1) == b.out(), "low rank: x is ", x.sizes(),
        ", A [", a.out(), ", ", a.in(), "], B [", b.out(), ", ", b.in(), "], the result ", y.sizes());
  if (!wants_gradient(y, x, a.master, b.master)) return sum_of(y, x, a, b, scale).out;
  return LowRank::apply(y, x, a.master, b.master, a, b, scale);
}

}  // namespace easydel::ops
