#include "easydel/nn/indexer.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/topk.h>

#include <cmath>
#include <limits>

#include "easydel/ops/product.h"

namespace easydel::nn {
namespace {

// The first `dim` dimensions of each head are rotated.
Tensor rotated(const Tensor& x, const ops::RopeTable& table) { return ops::rope(x.contiguous(), table); }

}  // namespace

Indexer::Indexer(const Scope& scope, const MlaSpec& spec)
    : heads_(spec.index_heads),
      dim_(spec.index_dim),
      top_(spec.index_top),
      rope_(spec.index_rope),
      q_(scope / "wq_b", spec.q_rank, heads_ * dim_, {.deviation = spec.deviation}),
      k_(scope / "wk", spec.size, dim_, {.deviation = spec.deviation}),
      weights_(scope / "weights_proj", spec.size, heads_, {.deviation = spec.deviation}),
      k_norm_(scope / "k_norm", dim_, {NormKind::layer, 1e-6, 0.0, true}) {}

Tensor Indexer::keys(const Tensor& x, Pass& pass) const {
  const at::NoGradGuard no_gradient;
  return rotated(k_norm_(k_(x, pass, "index_key")).unsqueeze(1), pass.stream().rope_table(*rope_)).squeeze(1);
}

Indexer::Query Indexer::query(const Tensor& x, const Tensor& low, Pass& pass) const {
  const at::NoGradGuard no_gradient;
  const Tensor q = q_(low, pass, "index_query").view({x.size(0), heads_, dim_});
  return {rotated(q, pass.stream().rope_table(*rope_)),
          weights_(x, pass, "index_weights").to(at::kFloat) * std::pow(double(heads_), -0.5)};
}

std::vector<KeyChoice> Indexer::choose(const Query& query, const Tensor& keys, const Tensor& masked) const {
  const at::NoGradGuard no_gradient;
  constexpr double nothing = -std::numeric_limits<double>::infinity();
  const int64_t rows = query.q.size(0), n = keys.size(0);
  // The keys are used as a packed weight, so that a score has one order of additions, whatever else is in the pass.
  const Tensor wide = keys.to(at::kFloat).contiguous();
  const ops::Matrix matrix{wide, wide, ops::pack(wide)};
  const Tensor place = at::arange(n, keys.options().dtype(at::kLong));
  std::vector<KeyChoice> out;
  constexpr int64_t at_once = 64;  // rows whose scores [rows, heads, keys] are in memory at a time
  for (int64_t begin = 0; begin < rows; begin += at_once) {
    const int64_t count = std::min(at_once, rows - begin);
    const Tensor q = query.q.narrow(0, begin, count).to(at::kFloat).reshape({count * heads_, dim_});
    const Tensor products = ops::multiply(q, matrix, {}, at::kFloat).view({count, heads_, n});
    const Tensor scores = at::relu(products * std::pow(double(dim_), -0.5)),
                 weights = query.weights.narrow(0, begin, count);
    Tensor sums = scores.select(1, 0) * weights.narrow(1, 0, 1);
    for (int64_t head = 1; head < heads_; ++head) sums = sums + scores.select(1, head) * weights.narrow(1, head, 1);
    const Tensor own = at::arange(n - rows + begin, n - rows + begin + count, place.options()).unsqueeze(1);
    Tensor unseen = place > own;
    if (masked.defined()) unseen = unseen.logical_or(masked);
    sums = sums.masked_fill(unseen, nothing);
    const auto [values, indices] = at::topk(sums, std::min(top_, n), -1);
    for (int64_t row = 0; row < count; ++row) {
      const Tensor seen = indices[row].masked_select(values[row].isfinite());
      const bool fully_masked = seen.numel() == 0;
      out.push_back({fully_masked ? place : std::get<0>(seen.sort()), fully_masked});
    }
  }
  return out;
}

}  // namespace easydel::nn
