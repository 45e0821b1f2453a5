// log(1 + e^x), element by element: an element's bits do not depend on where it stands, as at::softplus' do.
#pragma once

#include "easydel/tensor/torch.h"

namespace easydel::ops {

// fp32, with a gradient.
Tensor softplus(const Tensor& x);

}  // namespace easydel::ops
