#include "easydel/nn/lm_head.h"

#include "easydel/nn/weight.h"
#include "easydel/ops/score.h"

namespace easydel::nn {

ops::Factors LmHead::factors(const Tensor& hidden, Pass& pass, std::vector<ops::Factors>& added) const {
  added = (reader_ ? reader_ : weight_.entry().weight)->factors(hidden, pass);
  ops::Factors first = std::move(added.front());
  added.erase(added.begin());
  return first;
}

Tensor LmHead::logits(const Tensor& hidden, Pass& pass) const {
  const at::NoGradGuard no_gradient;
  std::vector<ops::Factors> added;
  const ops::Factors first = factors(hidden, pass, added);
  Tensor logits = ops::head_product(first.x, first.weight, bias_ ? bias_.value() : Tensor(), added);
  if (multiplier_ != 1.0) logits.mul_(multiplier_);
  if (softcap_ > 0) logits.div_(softcap_).tanh_().mul_(softcap_);
  return logits;
}

Scores LmHead::score(const Tensor& hidden, const Tensor& labels, Pass& pass, const ScoreOptions& options) const {
  std::vector<ops::Factors> added;
  const ops::Factors first = factors(hidden, pass, added);
  ops::ScoreRequest request;
  request.temperature = options.temperature;
  request.entropy = options.entropy;
  request.entropy_gradient = options.entropy_gradient;
  request.correct = options.correct;
  request.mean_logit = options.mean_logit;
  request.uniform = options.uniform;
  request.log_normalizer = options.log_normalizer;
  request.chunk = options.chunk;
  request.multiplier = multiplier_;
  request.softcap = softcap_;
  ops::ScoreResult found = ops::score(first.x, first.weight, bias_ ? bias_.value() : Tensor(), labels, request, added);
  return {found.logps, found.uniform, found.log_normalizer, found.entropy, found.correct, found.mean_logit};
}

}  // namespace easydel::nn
