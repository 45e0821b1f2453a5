// What an adapter of low rank adds to a product (LoRA, arXiv:2106.09685).
#pragma once

#include "easydel/ops/product.h"
#include "easydel/tensor/torch.h"

namespace easydel::ops {

// y [tokens, out] + scale * (x A^T) B^T for x [tokens, in], a [r, in], b [out, r], which are no codes. Both products
// are rounded to x's dtype, and so is the sum. With b = 0 the result has y's bits. Gradients flow to y, x and both
// masters. y receives its gradient as it comes, without a copy.
Tensor add_low_rank(const Tensor& y, const Tensor& x, const Matrix& a, const Matrix& b, double scale);

}  // namespace easydel::ops
