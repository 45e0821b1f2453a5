// Products of tokens with their experts: tokens are sorted by expert, each expert's weight multiplies its own rows, and
// the results are summed back per token. No row is padded or dropped.
//
// A row's product does not depend on other rows, and a token's sum follows the order of its choices, so a token's
// result has the same bits for any other tokens in the batch.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "easydel/ops/moe_config.h"
#include "easydel/ops/product.h"

namespace easydel::ops {

// Tokens sorted by expert; tokens of one expert keep their order.
struct ExpertRows {
  std::vector<int64_t> begin;  // expert e has sorted rows [begin[e], begin[e + 1])
  Tensor choice;  // int64 [rows]: sorted row -> token * top_k + slot; undefined: each expert has all tokens
  Tensor place;   // int64 [tokens, top_k]: the inverse
  int64_t experts() const { return int64_t(begin.size()) - 1; }
  // int64 [begin.back()]: the token of each sorted row.
  Tensor tokens() const;
};
// indices int64 [tokens, top_k], each in [0, experts).
ExpertRows sort_by_expert(const Tensor& indices, int64_t experts);

// x [tokens, size] -> [rows, size], a token's row repeated for each of its choices.
Tensor gather_rows(const Tensor& x, const ExpertRows& rows);
// y [rows, size], weights [tokens, top_k], place as in ExpertRows -> [tokens, size] in y's dtype: the weighted sum over
// a token's choices, in fp32, in the order of the choices. Undefined weights: ones.
Tensor combine_rows(const Tensor& y, const Tensor& weights, const Tensor& place);

// The weights of all experts, like ops::Matrix.
struct ExpertMatrices {
  Tensor master;                                                     // [experts, out, in]
  Tensor compute;                                                    // [experts, out, in], no gradient
  std::vector<std::shared_ptr<const kernels::PackedWeight>> packed;  // by expert, null if not packed; empty: none

  Matrix of(int64_t expert) const;  // a view
};

// x [rows, in] sorted by expert -> [rows, out]: row r of expert e is x[r] W_e^T + bias[e]. bias is [experts, out] or
// undefined. Gradients flow to x, the master and the bias; experts without rows get zero.
Tensor grouped_product(const Tensor& x, const ExpertMatrices& weights, const Tensor& bias,
                       const std::vector<int64_t>& begin);

}  // namespace easydel::ops
