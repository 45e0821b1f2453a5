#include "easydel/nn/lm_head.h"

#include "easydel/nn/weight.h"
#include "easydel/ops/score.h"

namespace easydel::nn {

ops::Matrix LmHead::matrix() const { return (read_ ? read_ : weight_.entry().weight)->matrix(); }

Tensor LmHead::logits(const Tensor& hidden) const {
  const at::NoGradGuard no_gradient;
  Tensor logits = ops::multiply(hidden, matrix(), bias_ ? bias_.value() : Tensor(), at::kFloat);
  if (multiplier_ != 1.0) logits.mul_(multiplier_);
  if (softcap_ > 0) logits.div_(softcap_).tanh_().mul_(softcap_);
  return logits;
}

Scores LmHead::score(const Tensor& hidden, const Tensor& labels, const ScoreOptions& options) const {
  ops::ScoreRequest request;
  request.temperature = options.temperature;
  request.entropy = options.entropy;
  request.correct = options.correct;
  request.mean_logit = options.mean_logit;
  request.uniform = options.uniform;
  request.log_normalizer = options.log_normalizer;
  request.chunk = options.chunk;
  request.multiplier = multiplier_;
  request.softcap = softcap_;
  ops::ScoreResult found = ops::score(hidden, matrix(), bias_ ? bias_.value() : Tensor(), labels, request);
  return {found.logps, found.uniform, found.log_normalizer, found.entropy, found.correct, found.mean_logit};
}

}  // namespace easydel::nn
