#include "easydel/ops/moe.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/custom_function.h>

#include "easydel/base/error.h"
#include "easydel/base/names.h"
#include "easydel/kernels/grouped.h"
#include "easydel/ops/gradient.h"
#include "easydel/tensor/kernels.h"

namespace easydel::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// One row for each choice of x's tokens, in the order of `choice`.
Tensor repeated(const Tensor& x, const Tensor& choice, int64_t top_k) {
  return x.index_select(0, choice.floor_divide(top_k));
}

struct GatherRows : torch::autograd::Function<GatherRows> {
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& choice, const Tensor& place) {
    context->save_for_backward({place});
    return repeated(x, choice, place.size(1));
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const Tensor place = context->get_saved_variables()[0];
    return {combine_rows(gradients[0], {}, place), Tensor(), Tensor()};
  }
};

Tensor combined(const Tensor& y, const Tensor& weights, const Tensor& place) {
  Tensor sum;
  for (int64_t slot = 0; slot < place.size(1); ++slot) {
    Tensor term = y.index_select(0, place.select(1, slot)).to(at::kFloat);
    if (weights.defined()) term.mul_(weights.select(1, slot).to(at::kFloat).unsqueeze(1));
    sum = sum.defined() ? sum.add_(term) : std::move(term);
  }
  return sum.to(y.scalar_type());
}

struct CombineRows : torch::autograd::Function<CombineRows> {
  static Tensor forward(AutogradContext* context, const Tensor& y, const Tensor& weights, const Tensor& place) {
    context->save_for_backward({y, weights, place});
    return combined(y, weights, place);
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const Tensor &y = saved[0], &weights = saved[1], &place = saved[2];
    const Tensor gradient = gradients[0].to(at::kFloat);
    Tensor dy, dweights;
    if (context->needs_input_grad(0)) dy = at::zeros(y.sizes(), y.options());
    if (context->needs_input_grad(1)) dweights = at::empty(weights.sizes(), weights.options());
    for (int64_t slot = 0; slot < place.size(1); ++slot) {
      const Tensor at = place.select(1, slot);
      if (dy.defined())
        dy.index_copy_(0, at, (gradient * weights.select(1, slot).to(at::kFloat).unsqueeze(1)).to(y.scalar_type()));
      if (dweights.defined()) dweights.select(1, slot).copy_((y.index_select(0, at).to(at::kFloat) * gradient).sum(1));
    }
    return {dy, dweights, Tensor()};
  }
};

Tensor rows_of(const Tensor& x, const std::vector<int64_t>& begin, size_t expert) {
  return x.narrow(0, begin[expert], begin[expert + 1] - begin[expert]);
}

Tensor grouped(const Tensor& given, const ExpertMatrices& weights, const Tensor& bias,
               const std::vector<int64_t>& begin) {
  const Tensor x = given.detach().contiguous(), w = weights.compute;
  const Tensor y = at::empty({x.size(0), w.size(1)}, x.options());
  if (!tensor::kernels_serve(x, w)) {
    for (size_t e = 0; e + 1 < begin.size(); ++e)
      if (begin[e + 1] > begin[e])
        rows_of(y, begin, e)
            .copy_(multiply(rows_of(x, begin, e), weights.of(int64_t(e)),
                            bias.defined() ? bias.detach()[int64_t(e)] : Tensor(), x.scalar_type()));
    return y;
  }
  const bool wide = w.scalar_type() == at::kFloat;
  const auto order = wide ? kernels::AccumulationOrder::fp32_chain : kernels::bf16_order();
  // A bias is rounded to the dtype of the computation, as a model of that dtype would store it.
  const Tensor own = bias.defined() ? bias.detach().to(w.scalar_type()).to(at::kFloat).contiguous() : Tensor();
  const int64_t out = w.size(1), in = w.size(2);
  std::vector<const kernels::PackedWeight*> packed;
  for (const auto& one : weights.packed) packed.push_back(one.get());
  const kernels::Input stacked = tensor::input_of(w.view({-1, in}));
  kernels::grouped_product(
      tensor::executor(), begin, {.n = out, .k = in, .rows = stacked, .dtype = stacked.dtype, .packed = packed},
      tensor::input_of(x), tensor::output_of(y), own.defined() ? own.const_data_ptr<float>() : nullptr, order);
  return y;
}

// The gradients of each expert separately, on any device.
void of_each(const Tensor& gradient, const Tensor& x, const Tensor& w, const std::vector<int64_t>& begin,
             const Tensor& dx, const Tensor& dw) {
  if (dw.defined()) dw.zero_();
  for (size_t e = 0; e + 1 < begin.size(); ++e) {
    if (begin[e] == begin[e + 1]) continue;
    const Tensor dy = rows_of(gradient, begin, e);
    if (dx.defined()) rows_of(dx, begin, e).copy_(multiply_back(dy, w[int64_t(e)], gradient.scalar_type()));
    if (dw.defined()) add_weight_gradient(dw[int64_t(e)], dy, rows_of(x, begin, e));
  }
}

struct GroupedProduct : torch::autograd::Function<GroupedProduct> {
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& master,
                        const std::optional<Tensor>& bias, const ExpertMatrices& weights,
                        const std::vector<int64_t>& begin) {
    context->save_for_backward({master.requires_grad() ? x : Tensor(), weights.compute.detach()});
    context->saved_data["begin"] = begin;
    context->saved_data["master_type"] = int64_t(master.scalar_type());
    if (bias) context->saved_data["bias_type"] = int64_t(bias->scalar_type());
    return grouped(x, weights, bias.value_or(Tensor()), begin);
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const Tensor x = saved[0].defined() ? saved[0].contiguous() : saved[0], &w = saved[1];
    const Tensor gradient = gradients[0].contiguous();
    const auto begin = context->saved_data["begin"].toIntVector();
    const bool wants_bias = context->saved_data.count("bias_type") && context->needs_input_grad(2);
    Tensor dx, dw, db;
    if (context->needs_input_grad(0)) dx = at::empty({gradient.size(0), w.size(2)}, gradient.options());
    if (context->needs_input_grad(1)) dw = at::empty(w.sizes(), w.options().dtype(at::kFloat));
    if (wants_bias) db = at::empty({w.size(0), w.size(1)}, w.options().dtype(at::kFloat));
    if (tensor::kernels_serve(gradient, w)) {
      const kernels::Input dy = tensor::input_of(gradient);
      const int64_t out = w.size(1), in = w.size(2);
      if (dx.defined())
        kernels::grouped_product_dx(tensor::executor(), begin, dy, tensor::input_of(w.view({-1, in})), out, in,
                                    tensor::output_of(dx));
      if (dw.defined())
        kernels::grouped_product_dw(tensor::executor(), begin, dy, tensor::input_of(x), out, in,
                                    tensor::output_of(dw.view({-1, in})));
    } else {
      of_each(gradient, x, w, begin, dx, dw);
    }
    for (size_t e = 0; db.defined() && e + 1 < begin.size(); ++e)
      db[int64_t(e)].copy_(rows_of(gradient, begin, e).sum(0, false, at::kFloat));
    const auto typed = [&](const Tensor& t, const char* key) {
      return t.defined() ? t.to(at::ScalarType(context->saved_data[key].toInt())) : t;
    };
    return {dx, typed(dw, "master_type"), typed(db, "bias_type"), Tensor(), Tensor()};
  }
};

}  // namespace

Tensor ExpertRows::tokens() const {
  return choice.defined() ? choice.narrow(0, 0, begin.back()).div(place.size(1), "floor")
                          : at::arange(begin.back(), place.options()).remainder(place.size(0));
}

ExpertRows sort_by_expert(const Tensor& indices, int64_t experts) {
  const Tensor flat = indices.to(at::kCPU).contiguous().view({-1});
  const int64_t* expert = flat.const_data_ptr<int64_t>();
  const int64_t rows = flat.numel();
  ExpertRows out;
  out.begin.assign(size_t(experts) + 1, 0);
  for (int64_t i = 0; i < rows; ++i) {
    check(expert[i] >= 0 && expert[i] < experts, "experts: index ", expert[i], " of ", experts);
    ++out.begin[size_t(expert[i]) + 1];
  }
  for (size_t e = 0; e < size_t(experts); ++e) out.begin[e + 1] += out.begin[e];
  std::vector<int64_t> next(out.begin.begin(), out.begin.end() - 1);
  out.choice = at::empty({rows}, flat.options());
  out.place = at::empty(indices.sizes(), flat.options());
  int64_t* const choice = out.choice.mutable_data_ptr<int64_t>();
  int64_t* const place = out.place.mutable_data_ptr<int64_t>();
  for (int64_t i = 0; i < rows; ++i) {
    place[i] = next[size_t(expert[i])]++;
    choice[place[i]] = i;
  }
  out.choice = out.choice.to(indices.device());
  out.place = out.place.to(indices.device());
  return out;
}

Tensor gather_rows(const Tensor& x, const ExpertRows& rows) {
  return wants_gradient(x) ? GatherRows::apply(x, rows.choice, rows.place)
                           : repeated(x, rows.choice, rows.place.size(1));
}

Tensor combine_rows(const Tensor& y, const Tensor& weights, const Tensor& place) {
  if (!weights.defined()) {
    check(!wants_gradient(y), "combine_rows: a gradient needs weights");
    return combined(y, weights, place);
  }
  return wants_gradient(y, weights) ? CombineRows::apply(y, weights, place) : combined(y, weights, place);
}

Matrix ExpertMatrices::of(int64_t expert) const {
  return {master[expert], compute[expert], packed.empty() ? nullptr : packed[size_t(expert)]};
}

Tensor grouped_product(const Tensor& x, const ExpertMatrices& weights, const Tensor& bias,
                       const std::vector<int64_t>& begin) {
  check(x.dim() == 2 && weights.compute.dim() == 3 && x.size(1) == weights.compute.size(2) &&
            int64_t(begin.size()) == weights.compute.size(0) + 1 && begin.back() == x.size(0),
        "grouped product: x is ", x.sizes(), ", the weights ", weights.compute.sizes(), ", rows end at ", begin.back());
  if (!wants_gradient(x, weights.master, bias)) return grouped(x, weights, bias, begin);
  return GroupedProduct::apply(x, weights.master, argument(bias), weights, begin);
}

}  // namespace easydel::ops
