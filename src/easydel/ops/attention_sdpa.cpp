// Torch's fused attention, one sequence at a time. A reference only: its result depends on which kernel torch selects.
#include <ATen/ops/arange.h>
#include <ATen/ops/scaled_dot_product_attention.h>

#include "easydel/ops/attention_backends.h"
#include "easydel/ops/attention_scores.h"

namespace easydel::ops {
namespace {

Tensor sdpa(const AttentionNeed& need, const AttentionRange& range) {
  const auto batch = [](const Tensor& t, int64_t begin, int64_t end) {
    return t.slice(0, begin, end).transpose(0, 1).unsqueeze(0);
  };
  const int64_t rows = range.end - range.begin, keys = range.key_end - range.key_begin;
  const bool causal = need.spec.kind == AttentionKind::causal && rows > 1;
  std::optional<Tensor> mask;
  if ((causal && rows != keys) || (need.spec.window > 0 && keys > need.spec.window)) {
    const auto options = need.q.options().dtype(at::kLong);
    mask = unseen(need.spec, at::arange(keys - rows, keys, options), at::arange(keys, options)).logical_not();
  }
  const Tensor out = at::scaled_dot_product_attention(
      batch(need.q, range.begin, range.end), batch(need.k, range.key_begin, range.key_end),
      batch(need.v, range.key_begin, range.key_end), mask, 0.0, causal && !mask, need.spec.scale,
      need.q.size(1) != need.k.size(1));
  return out.squeeze(0).transpose(0, 1);
}

std::optional<std::string> refused_by_sdpa(const AttentionNeed& need) {
  const AttentionSpec& spec = need.spec;
  if (spec.kind != AttentionKind::causal && spec.kind != AttentionKind::full) return "serves causal and full attention";
  if (spec.chunk || spec.softcap > 0 || spec.sinks.defined() || spec.slopes.defined() || spec.bias.defined())
    return "knows no chunks, soft-caps, sinks, slopes or biases";
  if (spec.dropout > 0) return "its dropout is not reproducible";
  if (need.call.masked.defined()) return "does not support key masks";
  return std::nullopt;
}

Tensor attend_by_sdpa(const AttentionNeed& need) { return one_by_one(need, sdpa); }

}  // namespace

AttentionBackend sdpa_attention() {
  return {AttentionMechanism::sdpa, 10, "Torch's fused attention, a sequence at a time.", refused_by_sdpa,
          attend_by_sdpa};
}

}  // namespace easydel::ops
