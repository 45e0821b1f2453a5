#include "easydel/ops/attention_scores.h"

#include <ATen/ops/matmul.h>
#include <ATen/ops/tanh.h>

namespace easydel::ops {

Tensor heads_first(const Tensor& t, int64_t heads) {
  const Tensor out = t.transpose(0, 1).to(at::kFloat);
  return out.size(0) == heads ? out : out.repeat_interleave(heads / out.size(0), 0);
}

Tensor attention_scores(const AttentionSpec& spec, const Tensor& q, const Tensor& k, const Tensor& query,
                        const Tensor& key, const Tensor& counted) {
  Tensor scores = at::matmul(q, k.transpose(1, 2));
  if (spec.slopes.defined() && spec.slopes_in_bf16) {
    const Tensor place = (counted.defined() ? counted : key).to(at::kBFloat16);
    scores = scores + (spec.slopes.to(at::kBFloat16).view({-1, 1, 1}) * place).to(at::kFloat);
  }
  scores = scores * spec.scale;
  if (spec.softcap > 0) scores = at::tanh(scores / spec.softcap) * spec.softcap;
  if (spec.slopes.defined() && !spec.slopes_in_bf16) {
    const Tensor distance = (query.unsqueeze(1) - key).abs().to(at::kFloat);
    scores = scores - spec.slopes.to(at::kFloat).view({-1, 1, 1}) * distance;
  }
  return scores;
}

Tensor unseen(const AttentionSpec& spec, const Tensor& query_places, const Tensor& key) {
  const Tensor query = query_places.unsqueeze(1);
  Tensor mask = spec.kind == AttentionKind::causal ? key > query : (key < 0).expand({query.size(0), key.size(0)});
  if (spec.window > 0) mask = mask.logical_or(key <= query - spec.window).logical_or(key >= query + spec.window);
  if (spec.chunk > 0) mask = mask.logical_or(key.floor_divide(spec.chunk) != query.floor_divide(spec.chunk));
  return mask;
}

}  // namespace easydel::ops
