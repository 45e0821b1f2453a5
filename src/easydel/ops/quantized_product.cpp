#include "easydel/ops/quantized_product.h"

#include <ATen/ops/empty.h>
#include <torch/csrc/autograd/custom_function.h>

#include "easydel/base/error.h"
#include "easydel/kernels/grouped.h"
#include "easydel/kernels/quantized_rows.h"
#include "easydel/ops/embedding.h"
#include "easydel/ops/gradient.h"
#include "easydel/ops/product_back.h"
#include "easydel/tensor/kernels.h"

namespace easydel::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct WeightHolder : torch::CustomClassHolder {
  explicit WeightHolder(Matrix w) : weight(std::move(w)) {}
  Matrix weight;
};

// The rows of a weight in `type`, decoded when they are read. Kernels read fp32 and bf16.
WeightRows weight_rows(const Matrix& weight, at::ScalarType type) {
  return {weight.out(), weight.in(), type, [&weight, type, room = Tensor()](int64_t first, int64_t count) mutable {
            if (!room.defined() || room.size(0) < count)
              room = at::empty({count, weight.in()}, at::TensorOptions().dtype(type));
            const Tensor rows = room.narrow(0, 0, count);
            if (weight.quantized) {
              kernels::dequantize_rows(tensor::executor(), *weight.quantized, first, count, tensor::output_of(rows));
            } else {
              const kernels::EncodedWeight& all = *weight.encoded;
              kernels::decode(tensor::executor(), {all.rows, count, all.first + first * all.step, all.step},
                              tensor::output_of(rows));
            }
            return rows;
          }};
}

struct QuantizedProduct : torch::autograd::Function<QuantizedProduct> {
  static Tensor forward(AutogradContext* context, const Tensor& x, const std::optional<Tensor>& bias,
                        const Matrix& weight) {
    if (bias) context->saved_data["bias_type"] = int64_t(bias->scalar_type());
    context->saved_data["weight"] = held(weight);
    return multiply_codes(x, weight, bias.value_or(Tensor()), x.scalar_type());
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const Tensor gradient = gradients[0].contiguous();
    const Matrix weight = held_matrix(context->saved_data["weight"]);
    Tensor dx, db;
    if (context->needs_input_grad(0)) dx = multiply_codes_back(gradient, weight, gradient.scalar_type());
    if (context->saved_data.count("bias_type") && context->needs_input_grad(1))
      db = gradient.sum(0, false, at::kFloat).to(at::ScalarType(context->saved_data["bias_type"].toInt()));
    return {dx, db, Tensor()};
  }
};

}  // namespace

Tensor multiply_codes(const Tensor& x, const Matrix& weight, const Tensor& bias, at::ScalarType type) {
  check(x.dim() == 2 && x.size(1) == weight.in(), "quantized product: x is ", x.sizes(), ", the weight [", weight.out(),
        ", ", weight.in(), "]");
  const Tensor in = (x.numel() == 0 || x.stride(-1) == 1 ? x : x.contiguous()).detach();
  check(tensor::kernels_serve(in), "quantized product: x is on a CPU in fp32 or bf16");
  const Tensor y = at::empty({x.size(0), weight.out()}, x.options().dtype(type));
  const Tensor own = bias.defined() ? bias.detach().to(x.scalar_type()).to(at::kFloat).contiguous() : Tensor();
  const float* const added = own.defined() ? own.const_data_ptr<float>() : nullptr;
  const bool wide = x.scalar_type() == at::kFloat;
  const auto order = wide ? kernels::AccumulationOrder::fp32_chain : kernels::bf16_order();
  if (weight.quantized) {
    kernels::product(tensor::executor(), *weight.quantized, tensor::input_of(in), x.size(0), tensor::output_of(y),
                     added, order);
    return y;
  }
  const int64_t begin[] = {0, x.size(0)};
  kernels::grouped_product(tensor::executor(), begin,
                           {.n = weight.out(),
                            .k = weight.in(),
                            .dtype = wide ? kernels::DType::f32 : kernels::DType::bf16,
                            .encoded = {weight.encoded.get(), 1}},
                           tensor::input_of(in), tensor::output_of(y), added, order);
  return y;
}

Tensor quantized_product(const Tensor& x, const Matrix& weight, const Tensor& bias) {
  if (!wants_gradient(x, bias)) return multiply_codes(x, weight, bias, x.scalar_type());
  return QuantizedProduct::apply(x, argument(bias), weight);
}

Tensor multiply_codes_back(const Tensor& gradient, const Matrix& weight, at::ScalarType type) {
  return multiply_back(gradient, weight_rows(weight, gradient.scalar_type()), type);
}

Matrix first_rows(const Matrix& weight, int64_t n) {
  Matrix out = weight;
  if (weight.quantized)
    out.quantized = std::make_shared<kernels::QuantizedWeight>(kernels::rows_of(*weight.quantized, 0, n));
  else
    out.encoded = std::make_shared<kernels::EncodedWeight>(
        kernels::EncodedWeight{weight.encoded->rows, n, weight.encoded->first, weight.encoded->step});
  return out;
}

c10::IValue held(const Matrix& weight) { return c10::IValue::make_capsule(c10::make_intrusive<WeightHolder>(weight)); }

Matrix held_matrix(const c10::IValue& value) {
  return c10::static_intrusive_pointer_cast<WeightHolder>(value.toCapsule())->weight;
}

Tensor decoded_rows(const Matrix& weight, const Tensor& indices, at::ScalarType type) {
  check_indices(indices, weight.out());
  const Tensor own = indices.to(at::kLong).contiguous();
  const Tensor out = at::empty({own.numel(), weight.in()}, at::TensorOptions().dtype(type));
  const WeightRows weight_row = weight_rows(weight, type);
  const int64_t* const wanted = own.const_data_ptr<int64_t>();
  for (int64_t i = 0; i < own.numel(); ++i) out[i].copy_(weight_row.rows(wanted[i], 1)[0]);
  return out;
}

Tensor decoded(const Matrix& weight, at::ScalarType type) {
  if (weight.quantized) return dequantized(*weight.quantized, type);
  const bool narrow = type == at::kFloat || type == at::kBFloat16;
  const Tensor w = at::empty({weight.out(), weight.in()}, at::TensorOptions().dtype(narrow ? type : at::kFloat));
  kernels::decode(tensor::executor(), *weight.encoded, tensor::output_of(w));
  return w.to(type);
}

Tensor dequantized(const kernels::QuantizedWeight& weight, at::ScalarType type) {
  const Tensor w = at::empty({weight.n(), weight.k()}, at::TensorOptions().dtype(type));
  kernels::dequantize(tensor::executor(), weight, tensor::output_of(w));
  return w;
}

}  // namespace easydel::ops
