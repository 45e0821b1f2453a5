// Attention with materialized scores: slow, exact, differentiable by ATen. Supports everything; the other backends are
// tested against it.
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/cumsum.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/zeros.h>

#include <limits>

#include "easydel/base/error.h"
#include "easydel/ops/attention_backends.h"
#include "easydel/ops/attention_scores.h"
#include "easydel/ops/dropout.h"

namespace easydel::ops {
namespace {

// Mask of keys [keys]; undefined if none is masked.
Tensor masked_keys(const AttentionNeed& need, const AttentionRange& range) {
  return need.call.masked.defined() ? need.call.masked.slice(0, range.key_begin, range.key_end) : Tensor();
}

// int64 [keys]: positions counted over the unmasked keys.
Tensor unmasked_positions(const Tensor& masked) {
  const Tensor unmasked = masked.logical_not().to(at::kLong);
  return (unmasked.cumsum(0) - 1) * unmasked;
}

Tensor vanilla(const AttentionNeed& need, const AttentionRange& range) {
  const auto keys_of = [&](const Tensor& t) { return t.slice(0, range.key_begin, range.key_end); };
  Tensor weights =
      attention_weights(need.spec, need.q.slice(0, range.begin, range.end), keys_of(need.k), masked_keys(need, range));
  if (need.spec.dropout > 0)
    weights = dropout_rows(weights, need.spec.dropout, need.call.dropout_key, need.call.first_token + range.begin);
  return at::matmul(weights, heads_first(keys_of(need.v), need.q.size(1))).transpose(0, 1).to(need.q.scalar_type());
}

std::optional<std::string> refused_by_vanilla(const AttentionNeed& need) {
  if (need.spec.kind == AttentionKind::spans) return "knows no spans";
  if (need.spec.bias.defined()) return "takes no bias";
  return std::nullopt;
}

Tensor attend_by_vanilla(const AttentionNeed& need) { return one_by_one(need, vanilla); }

}  // namespace

Tensor attention_weights(const AttentionSpec& spec, const Tensor& q, const Tensor& k, const Tensor& masked) {
  const int64_t heads = q.size(1), keys = k.size(0);
  const auto options = q.options().dtype(at::kLong);
  const Tensor key = at::arange(keys, options), query = at::arange(keys - q.size(0), keys, options);
  Tensor scores = attention_scores(spec, heads_first(q, heads), heads_first(k, heads), query, key,
                                   masked.defined() ? unmasked_positions(masked) : Tensor());
  // Masked scores get the least finite number added, as in transformers, instead of being replaced by it: a row without
  // visible keys then attends to all of them equally, and its scores still have their gradient.
  constexpr double least = std::numeric_limits<float>::lowest();
  // Chunks begin with the text, after the padding.
  const Tensor begin = masked.defined() ? (masked.logical_not().cumsum(0).eq(0)).sum() : at::zeros({}, options);
  const Tensor mask = unseen(spec, query - begin, key - begin);
  if (!masked.defined() || spec.fully_masked == FullyMasked::uniform)
    scores = scores + (masked.defined() ? mask.logical_or(masked) : mask).to(at::kFloat) * least;
  else if (spec.fully_masked == FullyMasked::uniform_without_gradient)
    scores = scores.masked_fill(mask.logical_or(masked), least);
  else
    scores = (scores + masked.to(at::kFloat) * least).masked_fill(mask, -std::numeric_limits<double>::infinity());
  if (spec.sinks.defined()) {
    const Tensor sink = spec.sinks.to(at::kFloat).view({-1, 1, 1}).expand({heads, scores.size(1), 1});
    scores = at::cat({scores, sink}, -1);
  }
  const Tensor weights = at::softmax(scores, -1);
  return spec.sinks.defined() ? weights.narrow(-1, 0, keys) : weights;
}

AttentionBackend vanilla_attention() {
  return {AttentionMechanism::vanilla, 0, "Written out in ATen, scores in memory: the reference.", refused_by_vanilla,
          attend_by_vanilla};
}

}  // namespace easydel::ops
