// Sums of squares, for the norm of many tensors.
#pragma once

#include "easydel/tensor/torch.h"

namespace easydel::tensor {

// In double precision, in an order that depends on the number of elements alone; by torch if kernels do not serve x.
double sum_of_squares(const Tensor& x);

}  // namespace easydel::tensor
