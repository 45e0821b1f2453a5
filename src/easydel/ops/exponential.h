// e^x, element by element: an element's bits do not depend on where it stands, as at::exp's do.
#pragma once

#include "easydel/tensor/torch.h"

namespace easydel::ops {

// In the dtype of x, with a gradient. Results below 2^-126 are 0 in fp32.
Tensor exponential(const Tensor& x);

}  // namespace easydel::ops
