#include "easydel/tensor/squares.h"

#include <ATen/ops/linalg_vector_norm.h>

#include "easydel/kernels/fused.h"
#include "easydel/tensor/kernels.h"

namespace easydel::tensor {

double sum_of_squares(const Tensor& x) {
  if (kernels_serve(x) && x.is_contiguous())
    return kernels::sum_of_squares(executor(), x.const_data_ptr(), kernel_dtype(x.scalar_type()), x.numel());
  const double norm = at::linalg_vector_norm(x).item<double>();
  return norm * norm;
}

double sum_of_squared_differences(const Tensor& x, const Tensor& y) {
  if (!kernels_serve(x, y) || !x.is_contiguous() || !y.is_contiguous())
    return sum_of_squares(x.to(at::kFloat) - y.to(at::kFloat));
  return kernels::sum_of_squared_differences(executor(), x.const_data_ptr(), kernel_dtype(x.scalar_type()),
                                             y.const_data_ptr(), kernel_dtype(y.scalar_type()), x.numel());
}

}  // namespace easydel::tensor
