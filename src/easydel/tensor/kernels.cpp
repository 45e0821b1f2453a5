#include "easydel/tensor/kernels.h"

#include "easydel/base/error.h"

namespace easydel::tensor {
namespace {

int64_t row_stride(const Tensor& x) {
  check(x.dim() <= 2 && (x.dim() == 0 || x.numel() == 0 || x.stride(-1) == 1), "kernels: a tensor of strides ",
        x.strides());
  return x.dim() == 2 ? x.stride(0) : x.numel();
}

}  // namespace

bool kernels_serve(const Tensor& x) {
  if (!x.defined()) return true;
  return x.is_cpu() && (x.scalar_type() == at::kFloat || x.scalar_type() == at::kBFloat16);
}

kernels::DType kernel_dtype(at::ScalarType type) {
  check(type == at::kFloat || type == at::kBFloat16, "kernels: no number type for ", c10::toString(type));
  return type == at::kFloat ? kernels::DType::f32 : kernels::DType::bf16;
}

kernels::DType page_dtype(at::ScalarType type) {
  if (type == at::kChar) return kernels::DType::i8;
  if (type == at::kByte) return kernels::DType::i4;
  return type == at::kFloat8_e4m3fn ? kernels::DType::e4m3 : kernel_dtype(type);
}

kernels::Input input_of(const Tensor& x) {
  if (!x.defined()) return {};
  return {x.const_data_ptr(), kernel_dtype(x.scalar_type()), row_stride(x)};
}

kernels::Output output_of(const Tensor& x) {
  if (!x.defined()) return {};
  return {x.mutable_data_ptr(), kernel_dtype(x.scalar_type()), row_stride(x)};
}

kernels::Heads heads_of(const Tensor& x) {
  check(x.dim() == 3 && (x.numel() == 0 || x.stride(2) == 1), "kernels: heads of strides ", x.strides());
  return {x.const_data_ptr(), kernel_dtype(x.scalar_type()), x.stride(0), x.stride(1)};
}

kernels::MutableHeads mutable_heads_of(const Tensor& x) {
  check(x.dim() == 3 && (x.numel() == 0 || x.stride(2) == 1), "kernels: heads of strides ", x.strides());
  return {x.mutable_data_ptr(), kernel_dtype(x.scalar_type()), x.stride(0), x.stride(1)};
}

float* mutable_numbers(const Tensor& x) { return x.defined() ? x.mutable_data_ptr<float>() : nullptr; }

Tensor contiguous_rows(const Tensor& x) { return x.numel() == 0 || x.stride(-1) == 1 ? x : x.contiguous(); }

}  // namespace easydel::tensor
