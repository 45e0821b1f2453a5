#include "easydel/ops/joint_products.h"

#include <ATen/ops/empty.h>

#include <algorithm>

#include "easydel/base/error.h"
#include "easydel/kernels/joint_products.h"
#include "easydel/ops/gradient.h"
#include "easydel/tensor/kernels.h"

namespace easydel::ops {
namespace {

bool are_joint(const Tensor& x, const Matrix& a, const Matrix& b) {
  if (a.encoded || b.encoded || !tensor::kernels_serve(x)) return false;
  if (a.quantized && b.quantized) return kernels::is_joint(*a.quantized, *b.quantized);
  return a.packed && b.packed && !a.quantized && !b.quantized && kernels::is_joint(*a.packed, *b.packed);
}

const kernels::QuantizedWeight* weight_of(const Matrix& m, const kernels::QuantizedWeight*) {
  return m.quantized.get();
}
const kernels::PackedWeight* weight_of(const Matrix& m, const kernels::PackedWeight*) { return m.packed.get(); }

// `type`: what products compute in, to which biases are rounded.
template <class W>
void multiply_together(const Tensor& x, std::span<const JointFactor> factors, at::ScalarType type,
                       std::vector<Tensor>& out) {
  std::vector<kernels::JointPart<W>> parts;
  std::vector<Tensor> biases;
  for (const JointFactor& factor : factors) {
    const Tensor& y = out.emplace_back(at::empty({x.size(0), factor.weight.out()}, x.options()));
    const Tensor& bias = biases.emplace_back(
        factor.bias.defined() ? factor.bias.detach().to(type).to(at::kFloat).contiguous() : Tensor());
    parts.push_back({weight_of(factor.weight, static_cast<const W*>(nullptr)), tensor::output_of(y),
                     bias.defined() ? bias.const_data_ptr<float>() : nullptr});
  }
  kernels::products(tensor::executor(), parts, tensor::input_of(x), x.size(0),
                    type == at::kFloat ? kernels::AccumulationOrder::fp32_chain : kernels::bf16_order());
}

}  // namespace

std::vector<Tensor> products(const Tensor& x, std::span<const JointFactor> factors) {
  std::vector<Tensor> out;
  const bool learns =
      std::ranges::any_of(factors, [&](const JointFactor& f) { return wants_gradient(x, f.weight.master, f.bias); });
  const Tensor in = learns ? x : tensor::contiguous_rows(x.detach());
  while (out.size() < factors.size()) {
    const std::span<const JointFactor> left = factors.subspan(out.size());
    const auto end = std::ranges::find_if_not(
        left, [&](const JointFactor& other) { return !learns && are_joint(in, left.front().weight, other.weight); });
    const auto count = size_t(end - left.begin());
    if (count < 2) {
      out.push_back(product(x, left.front().weight, left.front().bias));
      continue;
    }
    for (const JointFactor& factor : left.first(count))
      check(x.dim() == 2 && x.size(1) == factor.weight.in(), "product: x is ", x.sizes(), ", the weight [",
            factor.weight.out(), ", ", factor.weight.in(), "]");
    if (left.front().weight.quantized)
      multiply_together<kernels::QuantizedWeight>(in, left.first(count), x.scalar_type(), out);
    else
      multiply_together<kernels::PackedWeight>(in, left.first(count), left.front().weight.compute.scalar_type(), out);
  }
  return out;
}

}  // namespace easydel::ops
