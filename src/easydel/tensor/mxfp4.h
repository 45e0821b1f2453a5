// MXFP4 weights as published gpt_oss folders store them (OCP Microscaling Formats 1.0): 4-bit e2m1 values, two per byte
// with the low half first, and a power of two for every 32.
#pragma once

#include "easydel/tensor/torch.h"

namespace easydel::tensor {

// blocks uint8 [..., rows, groups, 16], scales uint8 [..., rows, groups] -> bf16 [..., rows, groups * 32], exact.
// UserError if the shapes do not match.
Tensor mxfp4_values(const Tensor& blocks, const Tensor& scales);

}  // namespace easydel::tensor
