// Products of many groups of rows, each with its own weight (the experts of a layer), and their gradients. All groups
// are cut into tasks of similar size, so that neither many small groups nor a large one leaves threads idle.
//
// Group g has rows [begin[g], begin[g + 1]) of x and y, and rows [g n, (g + 1) n) of the stacked weights. An element
// has the bits that product.h gives it for its group alone.
#pragma once

#include <span>

#include "easydel/kernels/encoded_weight.h"
#include "easydel/kernels/product.h"

namespace easydel::kernels {

// Stacked weights [groups n, k], and their packed forms (null: packed on use; empty: none are packed); or weights in
// codes, of which each panel is decoded to `dtype` when it is multiplied: an element has the bits that the decoded
// weight gives it.
struct GroupWeights {
  int64_t n = 0, k = 0;
  Input rows{};
  DType dtype = DType::f32;  // of `packed`
  std::span<const PackedWeight* const> packed = {};
  std::span<const EncodedWeight> encoded = {};  // one for each group, instead of `rows`; empty: they are values
};

// y = x W^T + bias. bias is [groups, n] or null.
void grouped_product(Executor& executor, std::span<const int64_t> begin, const GroupWeights& w, Input x, Output y,
                     const float* bias, AccumulationOrder order);

// dx = dy W from the stacked weights.
void grouped_product_dx(Executor& executor, std::span<const int64_t> begin, Input dy, Input w, int64_t n, int64_t k,
                        Output dx);

// dw [groups n, k] = dy^T x over each group's rows; zero for a group without rows.
void grouped_product_dw(Executor& executor, std::span<const int64_t> begin, Input dy, Input x, int64_t n, int64_t k,
                        Output dw);

}  // namespace easydel::kernels
