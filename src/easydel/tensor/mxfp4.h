// Weights in MXFP4 as published gpt_oss folders hold them (OCP Microscaling Formats 1.0): 4-bit numbers e2m1, two to a
// byte, the lower half first, with a power of two for every 32.
#pragma once

#include "easydel/tensor/torch.h"

namespace easydel::tensor {

// blocks uint8 [..., rows, groups, 16], scales uint8 [..., rows, groups] -> bf16 [..., rows, groups * 32], exactly.
// UserError where the shapes do not belong together.
Tensor mxfp4_values(const Tensor& blocks, const Tensor& scales);

}  // namespace easydel::tensor
