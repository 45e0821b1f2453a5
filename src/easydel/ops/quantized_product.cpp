#include "easydel/ops/quantized_product.h"

#include <ATen/ops/empty.h>
#include <torch/csrc/autograd/custom_function.h>

#include "easydel/base/error.h"
#include "easydel/ops/gradient.h"
#include "easydel/ops/product.h"
#include "easydel/tensor/kernels.h"

namespace easydel::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using Weight = std::shared_ptr<const kernels::QuantizedWeight>;

struct WeightHolder : torch::CustomClassHolder {
  explicit WeightHolder(Weight w) : weight(std::move(w)) {}
  Weight weight;
};

struct QuantizedProduct : torch::autograd::Function<QuantizedProduct> {
  static Tensor forward(AutogradContext* context, const Tensor& x, const std::optional<Tensor>& bias, Weight weight) {
    if (bias) context->saved_data["bias_type"] = int64_t(bias->scalar_type());
    context->saved_data["weight"] = c10::IValue::make_capsule(c10::make_intrusive<WeightHolder>(weight));
    return multiply_quantized(x, *weight, bias.value_or(Tensor()), x.scalar_type());
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const Tensor gradient = gradients[0].contiguous();
    const auto holder = c10::static_intrusive_pointer_cast<WeightHolder>(context->saved_data["weight"].toCapsule());
    Tensor dx, db;
    if (context->needs_input_grad(0))
      dx = multiply_back(gradient, dequantized(*holder->weight, gradient.scalar_type()), gradient.scalar_type());
    if (context->saved_data.count("bias_type") && context->needs_input_grad(1))
      db = gradient.sum(0, false, at::kFloat).to(at::ScalarType(context->saved_data["bias_type"].toInt()));
    return {dx, db, Tensor()};
  }
};

}  // namespace

Tensor multiply_quantized(const Tensor& x, const kernels::QuantizedWeight& weight, const Tensor& bias,
                          at::ScalarType type) {
  check(x.dim() == 2 && x.size(1) == weight.k(), "quantized product: x is ", x.sizes(), ", the weight [", weight.n(),
        ", ", weight.k(), "]");
  const Tensor in = x.numel() == 0 || x.stride(-1) == 1 ? x : x.contiguous();
  check(tensor::kernels_serve(in), "quantized product: x is on a CPU in fp32 or bf16");
  const Tensor y = at::empty({x.size(0), weight.n()}, x.options().dtype(type));
  const Tensor own = bias.defined() ? bias.detach().to(x.scalar_type()).to(at::kFloat).contiguous() : Tensor();
  kernels::product(tensor::executor(), weight, tensor::input_of(in.detach()), x.size(0), tensor::output_of(y),
                   own.defined() ? own.const_data_ptr<float>() : nullptr,
                   x.scalar_type() == at::kFloat ? kernels::AccumulationOrder::fp32_chain : kernels::bf16_order());
  return y;
}

Tensor quantized_product(const Tensor& x, const Weight& weight, const Tensor& bias) {
  if (!wants_gradient(x, bias)) return multiply_quantized(x, *weight, bias, x.scalar_type());
  return QuantizedProduct::apply(x, argument(bias), weight);
}

Tensor dequantized(const kernels::QuantizedWeight& weight, at::ScalarType type) {
  const Tensor w = at::empty({weight.n(), weight.k()}, at::TensorOptions().dtype(type));
  kernels::dequantize(tensor::executor(), weight, tensor::output_of(w));
  return w;
}

}  // namespace easydel::ops
