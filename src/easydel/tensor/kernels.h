// Tensors as kernels see them: pointers, number types and strides.
#pragma once

#include "easydel/kernels/attention.h"
#include "easydel/kernels/number.h"
#include "easydel/tensor/executor.h"
#include "easydel/tensor/torch.h"

namespace easydel::tensor {

// Whether kernels can work on a tensor: on the CPU, fp32 or bf16, elements of a row side by side.
bool kernels_serve(const Tensor& x);
template <class... Tensors>
bool kernels_serve(const Tensor& x, const Tensors&... others) {
  return kernels_serve(x) && (kernels_serve(others) && ...);
}

kernels::Number number_of(at::ScalarType type);  // Bug for another type
kernels::Input input_of(const Tensor& x);        // [rows, columns] or [columns]; undefined: no data
kernels::Output output_of(const Tensor& x);
kernels::Heads heads_of(const Tensor& x);  // [tokens, heads, dim]
kernels::MutableHeads mutable_heads_of(const Tensor& x);

}  // namespace easydel::tensor
