#include "easydel/ops/recurrence.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/maximum.h>
#include <torch/csrc/autograd/custom_function.h>

#include <limits>

#include "easydel/base/error.h"
#include "easydel/kernels/recurrence.h"
#include "easydel/ops/gradient.h"
#include "easydel/ops/recurrence_reference.h"
#include "easydel/tensor/kernels.h"

namespace easydel::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct RecurrenceShape {
  kernels::RecurrenceSpec spec;
  std::vector<int64_t> cu_seqlens;
};

struct RecurrenceShapeHolder : torch::CustomClassHolder {
  explicit RecurrenceShapeHolder(RecurrenceShape s) : shape(std::move(s)) {}
  RecurrenceShape shape;
};

const float* numbers(const Tensor& t) { return t.defined() ? t.const_data_ptr<float>() : nullptr; }

// Rows of `states`, whose first dimension is the sequence.
std::vector<kernels::RecurrenceRange> recurrence_ranges(const std::vector<int64_t>& cu_seqlens, const Tensor& states) {
  std::vector<kernels::RecurrenceRange> ranges;
  float* const first = tensor::mutable_numbers(states);
  for (size_t s = 0; s + 1 < cu_seqlens.size(); ++s) {
    float* const state = first ? first + int64_t(s) * states.stride(0) : nullptr;
    ranges.push_back({cu_seqlens[s], cu_seqlens[s + 1], state, state});
  }
  return ranges;
}

kernels::RecurrenceInputs inputs_of(const variable_list& t) {
  return {numbers(t[0]), numbers(t[1]), numbers(t[2]), numbers(t[3]), numbers(t[4]), numbers(t[5])};
}

Tensor in_fp32(const Tensor& t) { return t.defined() ? t.to(at::kFloat).contiguous() : t; }

// q, k, v, rate, slopes, beta: fp32 and contiguous.
struct Recurrence : torch::autograd::Function<Recurrence> {
  static Tensor forward(AutogradContext* context, const Tensor& q, const Tensor& k, const Tensor& v,
                        const std::optional<Tensor>& rate, const std::optional<Tensor>& slopes,
                        const std::optional<Tensor>& beta, const std::optional<Tensor>& states, RecurrenceShape shape) {
    const variable_list all = {q, k, v, rate.value_or(Tensor()), slopes.value_or(Tensor()), beta.value_or(Tensor())};
    const Tensor o = at::empty(v.sizes(), v.options());
    kernels::recurrence(tensor::executor(), shape.spec, inputs_of(all),
                        recurrence_ranges(shape.cu_seqlens, states.value_or(Tensor())), tensor::mutable_numbers(o));
    if (context) {
      context->save_for_backward(all);
      context->saved_data["shape"] =
          c10::IValue::make_capsule(c10::make_intrusive<RecurrenceShapeHolder>(std::move(shape)));
    }
    return o;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list all = context->get_saved_variables();
    const auto holder =
        c10::static_intrusive_pointer_cast<RecurrenceShapeHolder>(context->saved_data["shape"].toCapsule());
    const RecurrenceShape& shape = holder->shape;
    const int64_t tokens = all[2].size(0), heads = shape.spec.heads, k_dim = shape.spec.k_dim;
    const auto like = [&](const Tensor& t) { return t.defined() ? at::empty(t.sizes(), t.options()) : Tensor(); };
    const Tensor dq = at::empty({tokens, heads, k_dim}, all[2].options()), dk = at::empty_like(dq);
    const Tensor dv = like(all[2]), drate = like(all[3]), dbeta = like(all[5]);
    Tensor dslopes;
    const auto ranges = recurrence_ranges(shape.cu_seqlens, {});
    if (all[4].defined() && context->needs_input_grad(4))
      dslopes = at::empty({int64_t(ranges.size()), heads, k_dim, shape.spec.v_dim}, all[4].options());
    const Tensor d_o = gradients[0].contiguous();
    kernels::recurrence_backward(
        tensor::executor(), shape.spec, inputs_of(all), ranges, numbers(d_o),
        {tensor::mutable_numbers(dq), tensor::mutable_numbers(dk), tensor::mutable_numbers(dv),
         tensor::mutable_numbers(drate), tensor::mutable_numbers(dbeta), tensor::mutable_numbers(dslopes)});
    const auto of_groups = [&](const Tensor& t) {
      return t.view({tokens, shape.spec.groups, heads / shape.spec.groups, k_dim}).sum(2);
    };
    return {of_groups(dq), of_groups(dk), dv,      drate, dslopes.defined() ? dslopes.sum(0) : dslopes,
            dbeta,         Tensor(),      Tensor()};
  }
};

kernels::Decay decay_of(const RecurrenceTensors& in) {
  if (in.by_column.defined()) return kernels::Decay::values;
  if (!in.rate.defined()) return kernels::Decay::none;
  return in.rate.dim() == 2 ? kernels::Decay::scalar : kernels::Decay::keys;
}

}  // namespace

Tensor recurrence(const RecurrenceSpec& spec, const RecurrenceTensors& in, const std::vector<int64_t>& cu_seqlens,
                  const Tensor& states) {
  check(!in.rate.defined() || !in.by_column.defined(), "recurrence: a decay goes by rows or by columns");
  if (!in.v.is_cpu() || in.v.scalar_type() == at::kDouble) return recurrence_reference(spec, in, cu_seqlens, states);
  check(!states.defined() || (states.scalar_type() == at::kFloat && states.is_contiguous()),
        "recurrence: states are fp32");
  RecurrenceShape shape;
  shape.spec.heads = in.v.size(1);
  shape.spec.groups = in.q.size(1);
  shape.spec.k_dim = in.q.size(2);
  shape.spec.v_dim = in.v.size(2);
  shape.spec.decay = decay_of(in);
  shape.spec.delta = spec.delta;
  shape.spec.read_before = spec.read_before;
  shape.cu_seqlens = cu_seqlens;
  const Tensor q = in_fp32(in.q), k = in_fp32(in.k), v = in_fp32(in.v), beta = in_fp32(in.beta),
               slopes = in_fp32(in.slopes);
  const Tensor rate = in_fp32(in.by_column.defined() ? in.by_column : in.rate);
  const auto run = [&](auto&& function) {
    return function(q, k, v, argument(rate), argument(slopes), argument(beta), argument(states), std::move(shape));
  };
  if (!wants_gradient(q, k, v, rate, slopes, beta))
    return run([](auto&&... all) { return Recurrence::forward(nullptr, std::forward<decltype(all)>(all)...); });
  check(!states.defined(), "recurrence: states have no gradient");
  return run([](const Tensor& a, const Tensor& b, const Tensor& c, auto&&... rest) {
    return Recurrence::apply(a, b, c, std::forward<decltype(rest)>(rest)...);
  });
}

RunningMaximum running_maximum(const Tensor& f, const Tensor& i, const std::vector<int64_t>& cu_seqlens,
                               const Tensor& states) {
  const at::NoGradGuard no_gradient;
  const Tensor forget = in_fp32(f.detach()), input = in_fp32(i.detach());
  const int64_t tokens = input.size(0);
  RunningMaximum out{at::empty_like(input), at::full_like(input, -std::numeric_limits<float>::infinity())};
  if (states.defined())
    for (size_t s = 0; s + 1 < cu_seqlens.size(); ++s)
      if (cu_seqlens[s] < cu_seqlens[s + 1]) out.before[cu_seqlens[s]].copy_(states[int64_t(s)]);
  if (input.is_cpu()) {
    kernels::running_maximum(tensor::executor(), input.size(1), numbers(forget), numbers(input),
                             recurrence_ranges(cu_seqlens, states), tensor::mutable_numbers(out.after));
  } else {
    for (size_t s = 0; s + 1 < cu_seqlens.size(); ++s) {
      Tensor m = cu_seqlens[s] < tokens ? out.before[cu_seqlens[s]] : Tensor();
      for (int64_t t = cu_seqlens[s]; t < cu_seqlens[s + 1]; ++t)
        out.after[t].copy_(m = at::maximum(m + forget[t], input[t]));
      if (states.defined() && cu_seqlens[s] < cu_seqlens[s + 1]) states[int64_t(s)].copy_(m);
    }
  }
  for (size_t s = 0; s + 1 < cu_seqlens.size(); ++s)
    if (const int64_t begin = cu_seqlens[s], end = cu_seqlens[s + 1]; end - begin > 1)
      out.before.slice(0, begin + 1, end).copy_(out.after.slice(0, begin, end - 1));
  return out;
}

}  // namespace easydel::ops
