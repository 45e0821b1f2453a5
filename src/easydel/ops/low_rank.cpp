#include "easydel/ops/low_rank.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/sub.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "easydel/base/error.h"
#include "easydel/kernels/accumulation_order.h"
#include "easydel/kernels/grouped.h"
#include "easydel/kernels/low_rank.h"
#include "easydel/kernels/product_layout.h"
#include "easydel/ops/gradient.h"
#include "easydel/ops/weight_gradient.h"
#include "easydel/tensor/kernels.h"

namespace easydel::ops {
namespace {

using tensor::executor;
using tensor::input_of;
using tensor::output_of;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using Panels = std::shared_ptr<const kernels::PackedWeight>;
using Forms = std::shared_ptr<const LowRankForms>;

// Above this rank, FMAs in fp32 cost more than another sweep over the result.
constexpr int64_t max_fused_rank = 32;

const Tensor& exact(const Matrix& weight) { return weight.master.defined() ? weight.master : weight.compute; }

Panels panels_of(const Tensor& weight) {
  return std::make_shared<kernels::PackedWeight>(kernels::pack(executor(), input_of(tensor::contiguous_rows(weight)),
                                                               weight.size(0), weight.size(1), kernels::DType::f32));
}

// The rank that the narrow kernels read, padded with zeros; 0: the rows are multiplied as others are. In fp32 an
// adapter's sums have the order of every other product.
int64_t narrow_rank(const Tensor& rows, int64_t rank) {
  if (rows.scalar_type() != at::kBFloat16 || !tensor::kernels_serve(rows) || rank > kernels::max_narrow_rank) return 0;
  return rank <= 2 ? 2 : rank <= 4 ? 4 : 8;
}

// fp32 [narrow rank, k] of a weight [r, k].
Tensor padded(const Tensor& weight, int64_t rank) {
  const Tensor of = weight.detach().to(at::kFloat);
  if (of.size(0) == rank) return of.contiguous();
  const Tensor out = at::zeros({rank, of.size(1)}, of.options());
  out.narrow(0, 0, of.size(0)).copy_(of);
  return out;
}

// fp32 [tokens, narrow rank] = factor * rows x of^T for a padded weight, without a gradient.
Tensor narrow_product(const Tensor& rows, const Tensor& of, double factor) {
  const int64_t rank = of.size(0);
  const Tensor x = tensor::contiguous_rows(rows), low = at::empty({rows.size(0), rank}, of.options());
  kernels::narrow_product(executor(), input_of(x), of.const_data_ptr<float>(), rows.size(0), rows.size(1), rank,
                          float(factor), low.data_ptr<float>());
  return low;
}

// Whether rows x w^T is computed as (w rows^T)^T: by pairs, few rows of a weight are multiplied with the other side
// read where it is, without packing it and with less padding. An element is the same sum.
bool swaps(const Tensor& rows, const Tensor& w) {
  return rows.scalar_type() == at::kBFloat16 && w.scalar_type() == at::kBFloat16 && tensor::kernels_serve(rows, w) &&
         kernels::bf16_order() == kernels::AccumulationOrder::bf16_pairs && w.size(0) <= kernels::panel_columns &&
         4 * w.size(0) <= rows.size(0) && w.size(1) % kernels::k_block == 0;
}

// rows [tokens, k] x w [r, k]^T, without a gradient.
Tensor product_of_rows(const Tensor& rows, const Matrix& w, at::ScalarType type) {
  if (!swaps(rows, w.compute)) return multiply(rows, w, {}, type);
  const Tensor of = rows.detach();
  return multiply(w.compute, {of, of, nullptr}, {}, type).t().contiguous();
}

// gradient [tokens, out] x b [out, r].
Tensor product_with(const Tensor& gradient, const Tensor& b) {
  const Tensor transposed = b.t().contiguous();
  if (!swaps(gradient, transposed)) return multiply_back(gradient, b, gradient.scalar_type());
  return product_of_rows(gradient, {transposed, transposed, nullptr}, gradient.scalar_type());
}

// Whether writing to t changes no other tensor.
bool is_alone(const Tensor& t) { return t.use_count() == 1 && t.storage().use_count() == 1 && t.is_contiguous(); }

// y + factor * (low B^T), where low may have more columns than B. y may be undefined; it is the result if it may be
// overwritten.
Tensor add_product(const Tensor& y, const Tensor& low, const kernels::PackedWeight& b, double factor,
                   at::ScalarType type, bool overwrite = false) {
  const Tensor out = overwrite ? y : at::empty({low.size(0), b.n()}, low.options().dtype(type));
  const Tensor rows = y.defined() ? tensor::contiguous_rows(y) : y;
  kernels::add_narrow_product(executor(), y.defined() ? input_of(rows) : kernels::Input(), low.const_data_ptr<float>(),
                              low.stride(0), b, low.size(0), float(factor), output_of(out));
  return out;
}

// Whether kernels read A while they add the rows of x; otherwise x A^T is a product of its own.
bool reads_a(const LowRankForms& forms, const Tensor& x) {
  return x.scalar_type() == at::kBFloat16 && (forms.both || (forms.narrow_a.defined() && forms.b));
}

// sign * x A^T of adapters whose A have equal shapes and dtypes, one after the other.
Tensor products_apart(const Tensor& x, const std::vector<kernels::AddedRows*>& adapters,
                      const std::vector<const kernels::PackedWeight*>& packed) {
  std::vector<int64_t> begin = {0}, taken;
  for (const kernels::AddedRows* const one : adapters) {
    taken.insert(taken.end(), one->rows.begin(), one->rows.end());
    begin.push_back(int64_t(taken.size()));
  }
  const kernels::PackedWeight& a = *packed.front();
  const bool wide = a.dtype() == kernels::DType::f32;
  const Tensor from = x.index_select(0, at::tensor(taken, at::kLong)),
               low = at::empty({from.size(0), a.n()}, x.options().dtype(at::kFloat));
  kernels::grouped_product(executor(), begin, {.n = a.n(), .k = a.k(), .dtype = a.dtype(), .packed = packed},
                           input_of(from), output_of(low), nullptr,
                           wide ? kernels::AccumulationOrder::fp32_chain : kernels::bf16_order());
  for (size_t i = 0; i < adapters.size(); ++i) {
    low.narrow(0, begin[i], begin[i + 1] - begin[i]).mul_(adapters[i]->sign);
    adapters[i]->low = low.const_data_ptr<float>() + begin[i] * a.n();
  }
  return low;
}

Tensor subtracted(const Tensor& y, const Tensor& x, double scale) {
  if (!tensor::kernels_serve(y, x)) return at::sub(y, x, scale);
  const Tensor out = at::empty(y.sizes(), y.options());
  kernels::add_scaled(executor(), input_of(y), input_of(x), y.size(0), y.size(1), float(-scale), output_of(out));
  return out;
}

struct Sum {
  Tensor low, out;  // x A^T, of the opposite sign if the scale is positive, and the result
};

// y - |scale| * p, where p is of the opposite sign: subtracting +0 leaves every number as it is, while adding it would
// make +0 of -0. `overwrite`: the result may be y.
Sum sum_of(const Tensor& y, const Tensor& x, const Matrix& a, const Matrix& b, double scale, const Forms& forms,
           bool overwrite) {
  const double sign = scale < 0 ? 1 : -1;
  if (!tensor::kernels_serve(y, x)) {
    const Tensor low = multiply(x, a, {}, x.scalar_type()).mul_(sign);
    return {low, at::sub(y, multiply(low, b, {}, x.scalar_type()), std::fabs(scale))};
  }
  const int64_t rank = narrow_rank(x, a.out());
  const bool kept = forms && forms->narrow_a.defined() && forms->b;
  const Tensor low = rank ? narrow_product(x, kept ? forms->narrow_a : padded(exact(a), rank), sign)
                          : product_of_rows(x, a, at::kFloat).mul_(sign);
  if (a.out() > max_fused_rank)
    return {low, subtracted(y, multiply(low.to(x.scalar_type()), b, {}, y.scalar_type()), std::fabs(scale))};
  const Panels panels = forms && forms->b ? forms->b : panels_of(exact(b).detach());
  return {low, add_product(y, low, *panels, -std::fabs(scale), y.scalar_type(), overwrite)};
}

struct LowRank : torch::autograd::Function<LowRank> {
  static Tensor forward(AutogradContext* context, const Tensor& y, const Tensor& x, const Tensor& master_a,
                        const Tensor& master_b, const Matrix& a, const Matrix& b, double scale, const Forms& forms,
                        const GatedInput* made_of) {
    const Sum sum = sum_of(y, x, a, b, scale, forms, false);
    const bool narrow = narrow_rank(x, a.out()) > 0;
    const Tensor low = narrow ? sum.low : sum.low.to(x.scalar_type());
    const bool learns_a = master_a.requires_grad(), remakes = learns_a && made_of;
    context->save_for_backward({remakes    ? made_of->gate.detach()
                                : learns_a ? x
                                           : Tensor(),
                                master_b.requires_grad() ? low : Tensor(), a.compute.detach(), b.compute.detach(),
                                narrow ? exact(a).detach() : Tensor(), narrow ? exact(b).detach() : Tensor(),
                                remakes ? made_of->up.detach() : Tensor()});
    if (remakes) context->saved_data["kind"] = int64_t(made_of->kind);
    context->saved_data["scale"] = scale;
    WeightGradient::remember(context, master_a, "a");
    WeightGradient::remember(context, master_b, "b");
    return sum.out;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const Tensor &low = saved[1], &a = saved[2], &b = saved[3], &exact_a = saved[4], &exact_b = saved[5];
    const Tensor gradient = gradients[0].stride(-1) == 1 ? gradients[0] : gradients[0].contiguous();
    const double scale = context->saved_data["scale"].toDouble();
    const int64_t rank = narrow_rank(gradient, a.size(0));
    const at::ScalarType type = gradient.scalar_type();
    Tensor dx, da, db;
    if (context->needs_input_grad(1) || context->needs_input_grad(2)) {
      const Tensor of_low =
          rank ? narrow_product(gradient, padded(exact_b.t(), rank), scale) : product_with(gradient, b).mul_(scale);
      if (context->needs_input_grad(1))
        dx = rank ? add_product({}, of_low, *panels_of(exact_a.t()), 1, type) : multiply_back(of_low, a, type);
      if (context->needs_input_grad(2)) {
        const Tensor x =
            saved[6].defined() ? gated(saved[0], saved[6], Activation(context->saved_data["kind"].toInt())) : saved[0];
        WeightGradient sum(context, a.sizes(), a.options(), "a");
        rank ? add_narrow(sum, of_low, x, false) : sum.add(of_low, x);
        da = sum.answer();
      }
    }
    if (context->needs_input_grad(3)) {
      WeightGradient sum(context, b.sizes(), b.options(), "b");
      const double by = scale < 0 ? scale : -scale;  // low is of the opposite sign
      rank ? add_narrow(sum, low * by, gradient, true) : sum.add(gradient, low * by);
      db = sum.answer();
    }
    return {gradients[0], dx, da, db, Tensor(), Tensor(), Tensor(), Tensor(), Tensor()};
  }

 private:
  // Adds low^T rows, or its transpose.
  static void add_narrow(WeightGradient& sum, const Tensor& low, const Tensor& rows, bool transposed) {
    const Tensor x = tensor::contiguous_rows(rows), dw = at::empty({low.size(1), x.size(1)}, low.options());
    kernels::narrow_gradient(executor(), low.const_data_ptr<float>(), input_of(x), x.size(0), x.size(1), low.size(1),
                             dw.data_ptr<float>());
    const Tensor own = transposed ? dw.narrow(0, 0, sum.sum().size(1)).t() : dw.narrow(0, 0, sum.sum().size(0));
    if (!sum.begun()) sum.clear();
    sum.sum().add_(own);
  }
};

struct Subtraction : torch::autograd::Function<Subtraction> {
  static Tensor forward(AutogradContext* context, const Tensor& y, const Tensor& x, double scale) {
    context->saved_data["scale"] = scale;
    return subtracted(y, x, scale);
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    return {gradients[0], gradients[0] * -context->saved_data["scale"].toDouble(), Tensor()};
  }
};

}  // namespace

Forms low_rank_forms(const Matrix& a, const Matrix& b) {
  const Tensor weight = exact(b).detach();
  const int64_t rank = narrow_rank(a.compute, a.out());
  const bool fused = tensor::kernels_serve(weight) && b.in() <= max_fused_rank;
  LowRankForms forms;
  if (fused) forms.b = panels_of(weight);
  if (rank) forms.narrow_a = padded(exact(a), rank);
  if (rank || !fused) return std::make_shared<LowRankForms>(std::move(forms));
  forms.a = a.packed ? a.packed : pack(a.compute);
  if (forms.a && kernels::bf16_order() == kernels::AccumulationOrder::bf16_pairs &&
      kernels::PackedLowRank::serves(*forms.a)) {
    forms.both = std::make_shared<kernels::PackedLowRank>(*forms.a, *forms.b);
    forms.a = forms.b = nullptr;
  }
  return std::make_shared<LowRankForms>(std::move(forms));
}

bool adds_rows(const LowRankForms& forms, const Tensor& x) {
  return tensor::kernels_serve(x) && (reads_a(forms, x) || (forms.a && forms.b));
}

void add_low_ranks(std::span<Tensor> ys, const Tensor& x, std::span<const std::vector<AddedRows>> added) {
  const Tensor from = tensor::contiguous_rows(x);
  std::vector<int64_t> all;
  std::vector<kernels::AddedRows> rows;
  std::vector<const LowRankForms*> forms;
  for (size_t i = 0; i < ys.size(); ++i) {
    check(!wants_gradient(ys[i], x), "low rank: rows are added, and something has a gradient");
    if (!added[i].empty() && !is_alone(ys[i])) ys[i] = ys[i].clone(at::MemoryFormat::Contiguous);
    for (const AddedRows& one : added[i]) {
      const LowRankForms& own = *forms.emplace_back(one.forms.get());
      check(adds_rows(own, x), "low rank: rows are added for an adapter that kernels do not take");
      if (one.rows.empty() && all.empty())
        for (int64_t row = 0; row < x.size(0); ++row) all.push_back(row);
      const bool narrow = own.narrow_a.defined();
      rows.push_back({.rows = one.rows.empty() ? all : one.rows,
                      .both = own.both.get(),
                      .narrow_a = narrow ? own.narrow_a.const_data_ptr<float>() : nullptr,
                      .rank = narrow  ? own.narrow_a.size(0)
                              : own.a ? own.a->n()
                                      : 0,
                      .b = own.b.get(),
                      .sign = one.scale < 0 ? 1.0F : -1.0F,
                      .factor = float(-std::fabs(one.scale)),
                      .y = output_of(ys[i])});
    }
  }
  std::vector<Tensor> kept;
  for (size_t i = 0; i < rows.size();) {
    std::vector<kernels::AddedRows*> apart;
    std::vector<const kernels::PackedWeight*> packed;
    for (; i < rows.size(); ++i) {
      if (reads_a(*forms[i], x)) continue;
      const kernels::PackedWeight& a = *forms[i]->a;
      if (!packed.empty() && (a.n() != packed[0]->n() || a.dtype() != packed[0]->dtype())) break;
      apart.push_back(&rows[i]), packed.push_back(&a);
    }
    if (!apart.empty()) kept.push_back(products_apart(from, apart, packed));
  }
  kernels::add_low_ranks(executor(), rows, input_of(from), x.size(1));
}

Tensor add_low_rank(Tensor y, const Tensor& x, const Matrix& a, const Matrix& b, double scale, const Forms& forms,
                    const GatedInput* made_of) {
  check(!a.in_codes() && !b.in_codes(), "low rank: an adapter's weights are codes");
  check(x.dim() == 2 && x.size(1) == a.in() && a.out() == b.in() && y.size(1) == b.out(), "low rank: x is ", x.sizes(),
        ", A [", a.out(), ", ", a.in(), "], B [", b.out(), ", ", b.in(), "], the result ", y.sizes());
  if (!wants_gradient(y, x, a.master, b.master)) {
    if (forms && reads_a(*forms, x) && tensor::kernels_serve(y)) {
      const std::vector<AddedRows> own = {{{}, forms, scale}};
      add_low_ranks({&y, 1}, x, {&own, 1});
      return y;
    }
    return sum_of(y, x, a, b, scale, forms, is_alone(y)).out;
  }
  return LowRank::apply(y, x, a.master, b.master, a, b, scale, forms, made_of);
}

Tensor with_low_rank(const Tensor& base, const Tensor& a, const Tensor& b, double scale) {
  const Tensor values = tensor::kernels_serve(base) ? base.detach() : base.detach().to(at::kFloat);
  // contiguous() would keep a stride of a dimension of size 1 that kernels do not read.
  const auto rows = [](const Tensor& t) { return t.detach().to(at::kFloat).clone(at::MemoryFormat::Contiguous); };
  const Tensor left = rows(b), right = rows(a.t());
  if (!tensor::kernels_serve(values)) return values.add(left.mm(right.t()), scale);
  return add_product(values, left, *panels_of(right), scale, at::kFloat);
}

Tensor subtract_scaled(const Tensor& y, const Tensor& x, double scale) {
  return wants_gradient(y, x) ? Subtraction::apply(y, x, scale) : subtracted(y, x, scale);
}

}  // namespace easydel::ops
