// Sums of squares, for the norm of many tensors and the distance of two.
#pragma once

#include "easydel/tensor/torch.h"

namespace easydel::tensor {

// In double precision, in an order that depends on the number of elements alone; by torch if kernels do not serve x.
double sum_of_squares(const Tensor& x);
// The same of the fp32 differences x - y, of equal shapes.
double sum_of_squared_differences(const Tensor& x, const Tensor& y);

}  // namespace easydel::tensor
