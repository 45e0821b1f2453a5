// What an adapter of low rank adds to a product (LoRA, arXiv:2106.09685).
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "easydel/kernels/low_rank.h"
#include "easydel/ops/product.h"
#include "easydel/tensor/torch.h"

namespace easydel::ops {

// What add_low_rank reads of a and b, made once for an adapter that stays as it is.
struct LowRankForms {
  std::shared_ptr<const kernels::PackedLowRank> both;  // null: kernels do not support it, and the others are read
  Tensor narrow_a;                                     // fp32, with rows of zeros; undefined if the rank is not narrow
  // Null if kernels do not support it, or if narrow_a is read.
  std::shared_ptr<const kernels::PackedWeight> a;
  std::shared_ptr<const kernels::PackedWeight> b;  // null if kernels do not support it
};
std::shared_ptr<const LowRankForms> low_rank_forms(const Matrix& a, const Matrix& b);

// What x is made of: gated(gate, up).
struct GatedInput {
  Tensor gate, up;
  Activation kind;
};

// y [tokens, out] + scale * (x A^T) B^T for x [tokens, in], a [r, in], b [out, r], which are no codes. On a CPU, x A^T
// is not rounded, and up to rank 32 neither is the second product, which reads the master of b, so that the sum is
// rounded once. A row does not depend on the others. With b = 0 the result has y's bits. Gradients flow to y, x and
// both masters. y receives its gradient as it comes, without a copy; without gradients, a y that nobody else holds is
// overwritten. `forms`: low_rank_forms(a, b), made by the call if null. `made_of`: what x is, and what is kept for the
// backward instead of it; null: x is kept.
Tensor add_low_rank(Tensor y, const Tensor& x, const Matrix& a, const Matrix& b, double scale,
                    const std::shared_ptr<const LowRankForms>& forms = nullptr, const GatedInput* made_of = nullptr);

// Rows of a product's result and the adapter that adds to them: low_rank_forms() of it, and its scale.
struct AddedRows {
  std::vector<int64_t> rows;  // empty: all
  std::shared_ptr<const LowRankForms> forms;
  double scale = 1;
};

// Whether add_low_ranks() takes an adapter of these forms for rows like those of x: not above rank 32.
bool adds_rows(const LowRankForms& forms, const Tensor& x);

// add_low_rank() of rows of several results, with its bits, in one set of tasks for all of them: ys[i] is a product of
// x with some weight, added[i] has disjoint rows of it. Other rows stay as they are. A y that nobody else holds is
// overwritten. adds_rows() of each; nothing has a gradient.
void add_low_ranks(std::span<Tensor> ys, const Tensor& x, std::span<const std::vector<AddedRows>> added);

// base [out, in] + scale * b a in fp32, without gradients, for a [r, in], b [out, r]: an element of the product is one
// chain of FMAs, and the sum is one more.
Tensor with_low_rank(const Tensor& base, const Tensor& a, const Tensor& b, double scale);

// y - scale * x, rounded once, of equal shapes [tokens, size] and dtypes; a row does not depend on the others. With
// x = +0 the result has y's bits.
Tensor subtract_scaled(const Tensor& y, const Tensor& x, double scale);

}  // namespace easydel::ops
