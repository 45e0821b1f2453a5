// Tensors as kernels see them: pointers, dtypes and strides.
#pragma once

#include "easydel/kernels/attention.h"
#include "easydel/kernels/dtype.h"
#include "easydel/tensor/executor.h"
#include "easydel/tensor/torch.h"

namespace easydel::tensor {

// True if kernels can process x: on the CPU, fp32 or bf16, with contiguous rows.
bool kernels_serve(const Tensor& x);
template <class... Tensors>
bool kernels_serve(const Tensor& x, const Tensors&... others) {
  return kernels_serve(x) && (kernels_serve(others) && ...);
}

kernels::DType kernel_dtype(at::ScalarType type);  // Bug for another dtype
kernels::DType page_dtype(at::ScalarType type);    // of cached keys and values, which may be codes
kernels::Input input_of(const Tensor& x);          // [rows, columns] or [columns]; an undefined tensor has no data
kernels::Output output_of(const Tensor& x);
kernels::Heads heads_of(const Tensor& x);  // [tokens, heads, dim]
kernels::MutableHeads mutable_heads_of(const Tensor& x);
float* mutable_numbers(const Tensor& x);  // of fp32; null: undefined
Tensor contiguous_rows(const Tensor& x);  // x, or a copy if its rows are not contiguous

}  // namespace easydel::tensor
