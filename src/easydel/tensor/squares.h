// Sums of squares, for norms over many tensors.
#pragma once

#include "easydel/tensor/torch.h"

namespace easydel::tensor {

// In double precision, in an order that depends on the number of elements alone; of what kernels do not serve, torch's.
double sum_of_squares(const Tensor& x);

}  // namespace easydel::tensor
