#include "easydel/ops/convolution.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/custom_function.h>

#include "easydel/base/error.h"
#include "easydel/kernels/convolution.h"
#include "easydel/ops/gradient.h"
#include "easydel/tensor/kernels.h"

namespace easydel::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

Tensor plain(const Tensor& t) { return t.to(at::kFloat).contiguous(); }

std::vector<kernels::ConvolutionRange> ranges_of(const std::vector<int64_t>& cu_seqlens, const Tensor& states) {
  std::vector<kernels::ConvolutionRange> ranges;
  for (size_t s = 0; s + 1 < cu_seqlens.size(); ++s) {
    float* const state = states.defined() ? states.mutable_data_ptr<float>() + int64_t(s) * states.stride(0) : nullptr;
    ranges.push_back({cu_seqlens[s], cu_seqlens[s + 1], state, state});
  }
  return ranges;
}

kernels::ConvolutionSpec spec_of(const Tensor& weight, const Tensor& bias) {
  return {weight.size(0), weight.size(1), weight.const_data_ptr<float>(),
          bias.defined() ? bias.const_data_ptr<float>() : nullptr};
}

Tensor convolve(const Tensor& given, const Tensor& weight, const Tensor& bias, const std::vector<int64_t>& cu_seqlens,
                const Tensor& states) {
  const Tensor x = tensor::contiguous_rows(given), w = plain(weight), b = bias.defined() ? plain(bias) : bias;
  const Tensor y = at::empty(x.sizes(), x.options());
  kernels::convolve(tensor::executor(), spec_of(w, b), ranges_of(cu_seqlens, states), tensor::input_of(x),
                    tensor::output_of(y));
  return y;
}

struct Convolution : torch::autograd::Function<Convolution> {
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& weight,
                        const std::optional<Tensor>& bias, const std::vector<int64_t>& cu_seqlens) {
    context->save_for_backward({x, weight});
    context->saved_data["cu_seqlens"] = cu_seqlens;
    if (bias) context->saved_data["bias_type"] = int64_t(bias->scalar_type());
    return convolve(x.detach(), weight.detach(), bias ? bias->detach() : Tensor(), cu_seqlens, {});
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const Tensor x = tensor::contiguous_rows(saved[0]), &weight = saved[1], w = plain(weight),
                 dy = tensor::contiguous_rows(gradients[0]);
    const auto numbers = [](const Tensor& t) { return t.defined() ? t.mutable_data_ptr<float>() : nullptr; };
    Tensor dx, dweight, dbias;
    if (context->needs_input_grad(0)) dx = at::empty(x.sizes(), x.options());
    if (context->needs_input_grad(1)) dweight = at::empty(w.sizes(), w.options());
    if (context->saved_data.count("bias_type") && context->needs_input_grad(2))
      dbias = at::empty({w.size(0)}, w.options());
    kernels::convolve_backward(tensor::executor(), spec_of(w, {}),
                               ranges_of(context->saved_data["cu_seqlens"].toIntVector(), {}), tensor::input_of(x),
                               tensor::input_of(dy), dx.defined() ? tensor::output_of(dx) : kernels::Output(),
                               numbers(dweight), numbers(dbias));
    if (dweight.defined()) dweight = dweight.to(weight.scalar_type());
    if (dbias.defined()) dbias = dbias.to(at::ScalarType(context->saved_data["bias_type"].toInt()));
    return {dx, dweight, dbias, Tensor()};
  }
};

// Works on any device: prepends each sequence's earlier inputs and reads it `width` times.
Tensor reference(const Tensor& x, const Tensor& weight, const Tensor& bias, const std::vector<int64_t>& cu_seqlens,
                 const Tensor& states) {
  const auto wide = x.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  const int64_t width = weight.size(1), held = width - 1;
  std::vector<Tensor> parts;
  for (size_t s = 0; s + 1 < cu_seqlens.size(); ++s) {
    const int64_t begin = cu_seqlens[s], tokens = cu_seqlens[s + 1] - begin;
    const Tensor before =
        states.defined() ? states[int64_t(s)].to(wide) : at::zeros({held, x.size(1)}, x.options().dtype(wide));
    const Tensor all = at::cat({before, x.slice(0, begin, begin + tokens).to(wide)});
    Tensor y = all.slice(0, 0, tokens) * weight.select(1, 0).to(wide);
    if (bias.defined()) y = y + bias.to(wide);
    for (int64_t w = 1; w < width; ++w) y = y + all.slice(0, w, w + tokens) * weight.select(1, w).to(wide);
    if (states.defined()) states[int64_t(s)].copy_(all.slice(0, tokens, tokens + held));
    parts.push_back(y.to(x.scalar_type()));
  }
  return parts.empty() ? x : at::cat(parts);
}

}  // namespace

Tensor causal_convolution(const Tensor& x, const Tensor& weight, const Tensor& bias,
                          const std::vector<int64_t>& cu_seqlens, const Tensor& states) {
  check(x.dim() == 2 && weight.dim() == 2 && x.size(1) == weight.size(0), "convolution: x is ", x.sizes(),
        ", the weight ", weight.sizes());
  const bool learns = wants_gradient(x, weight, bias);
  check(!learns || !states.defined(), "convolution: states have no gradient");
  if (!tensor::kernels_serve(x, weight, bias)) return reference(x, weight, bias, cu_seqlens, states);
  check(!states.defined() || (states.scalar_type() == at::kFloat && states.is_contiguous()),
        "convolution: states are fp32");
  if (!learns) return convolve(x, weight, bias, cu_seqlens, states);
  return Convolution::apply(x, weight, argument(bias), cu_seqlens);
}

}  // namespace easydel::ops
