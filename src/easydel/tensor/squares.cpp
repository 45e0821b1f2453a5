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

}  // namespace easydel::tensor
