// Attention written out, scores and all: slow, exact, differentiable by ATen. The reference that the other backends are
// tested against, and the one that serves everything.
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/cumsum.h>
#include <ATen/ops/full.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/tanh.h>

#include <limits>

#include "easydel/base/error.h"
#include "easydel/ops/attention_backends.h"
#include "easydel/ops/dropout.h"

namespace easydel::ops {
namespace {

// [rows, keys], true where the row's place does not let it see the key. Queries stand at the end of the keys.
Tensor unseen(const AttentionNeed& need, const AttentionRange& range) {
  const auto options = need.q.options().dtype(at::kLong);
  const int64_t rows = range.end - range.begin, keys = range.key_end - range.key_begin;
  const Tensor key = at::arange(keys, options);
  const Tensor query = at::arange(keys - rows, keys, options).unsqueeze(1);
  Tensor mask = need.spec.kind == AttentionKind::causal ? key > query : key < at::full({rows, 1}, 0, options);
  if (need.spec.window > 0)
    mask = mask.logical_or(key <= query - need.spec.window).logical_or(key >= query + need.spec.window);
  if (need.spec.chunk > 0)
    mask = mask.logical_or(key.floor_divide(need.spec.chunk) != query.floor_divide(need.spec.chunk));
  return mask;
}

// [keys], or undefined where none is hidden.
Tensor hidden_keys(const AttentionNeed& need, const AttentionRange& range) {
  return need.call.hidden.defined() ? need.call.hidden.slice(0, range.key_begin, range.key_end) : Tensor();
}

// [heads, 1, keys]
Tensor rounded_slopes(const AttentionNeed& need, const AttentionRange& range) {
  Tensor position = at::arange(range.key_end - range.key_begin, need.q.options().dtype(at::kLong));
  if (const Tensor hidden = hidden_keys(need, range); hidden.defined()) {
    const Tensor shown = hidden.logical_not().to(at::kLong);
    position = (shown.cumsum(0) - 1) * shown;
  }
  return (need.spec.slopes.to(at::kBFloat16).view({-1, 1, 1}) * position.to(at::kBFloat16)).to(at::kFloat);
}

Tensor attend_one(const AttentionNeed& need, const AttentionRange& range) {
  const AttentionSpec& spec = need.spec;
  const int64_t heads = need.q.size(1), group = heads / need.k.size(1);
  const auto heads_first = [](const Tensor& t) { return t.transpose(0, 1).to(at::kFloat); };
  const auto shared = [&](const Tensor& t) {
    const Tensor part = heads_first(t.slice(0, range.key_begin, range.key_end));
    return group == 1 ? part : part.repeat_interleave(group, 0);
  };
  const Tensor q = heads_first(need.q.slice(0, range.begin, range.end)), k = shared(need.k), v = shared(need.v);
  Tensor scores = at::matmul(q, k.transpose(1, 2));
  if (spec.slopes.defined() && spec.slopes_in_bf16) scores = scores + rounded_slopes(need, range);
  scores = scores * spec.scale;
  if (spec.softcap > 0) scores = at::tanh(scores / spec.softcap) * spec.softcap;
  if (spec.slopes.defined() && !spec.slopes_in_bf16) {
    const Tensor key = at::arange(k.size(1), scores.options());
    const Tensor query = at::arange(k.size(1) - q.size(1), k.size(1), scores.options()).unsqueeze(1);
    scores = scores - spec.slopes.to(at::kFloat).view({-1, 1, 1}) * (query - key).abs();
  }
  // The least finite number is added, as transformers does, and not put in place of the score: a row that sees nothing
  // then weighs all alike, and its scores still have their gradient.
  constexpr double least = std::numeric_limits<float>::lowest();
  const Tensor mask = unseen(need, range), hidden = hidden_keys(need, range);
  if (!hidden.defined() || spec.blind == Blind::weighs_all)
    scores = scores + (hidden.defined() ? mask.logical_or(hidden) : mask).to(at::kFloat) * least;
  else if (spec.blind == Blind::weighs_all_cut)
    scores = scores.masked_fill(mask.logical_or(hidden), least);
  else
    scores = (scores + hidden.to(at::kFloat) * least).masked_fill(mask, -std::numeric_limits<double>::infinity());
  if (spec.sinks.defined()) {
    const Tensor sink = spec.sinks.to(at::kFloat).view({-1, 1, 1}).expand({heads, scores.size(1), 1});
    scores = at::cat({scores, sink}, -1);
  }
  Tensor weights = at::softmax(scores, -1);
  if (spec.sinks.defined()) weights = weights.narrow(-1, 0, k.size(1));
  if (spec.dropout > 0)
    weights = dropout_rows(weights, spec.dropout, need.call.dropout_key, need.call.first_token + range.begin);
  return at::matmul(weights, v).transpose(0, 1).to(need.q.scalar_type());
}

std::optional<std::string> refuses(const AttentionNeed& need) {
  if (need.spec.kind == AttentionKind::spans) return "knows no spans";
  if (need.spec.bias.defined()) return "takes no bias";
  return std::nullopt;
}

Tensor attend(const AttentionNeed& need) { return one_by_one(need, attend_one); }

}  // namespace

AttentionBackend vanilla_attention() {
  return {"vanilla", 0, "Written out in ATen, scores in memory: the reference.", refuses, attend};
}

}  // namespace easydel::ops
