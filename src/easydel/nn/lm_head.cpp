#include "easydel/nn/lm_head.h"

#include <utility>

#include "easydel/nn/weight.h"
#include "easydel/ops/head_divergence.h"
#include "easydel/ops/logit_chunks.h"
#include "easydel/ops/score.h"

namespace easydel::nn {

ops::HeadTerms LmHead::terms(const Tensor& hidden, Pass& pass) const {
  std::vector<ops::Factors> added = (reader_ ? reader_ : weight_.entry().weight)->factors(hidden, pass);
  ops::Factors first = std::move(added.front());
  added.erase(added.begin());
  return {std::move(first.x),
          std::move(first.weight),
          bias_ ? bias_.value() : Tensor(),
          std::move(added),
          multiplier_,
          softcap_};
}

Tensor LmHead::logits(const Tensor& hidden, Pass& pass) const {
  const at::NoGradGuard no_gradient;
  const ops::HeadTerms own = terms(hidden, pass);
  return ops::chunk_logits(own.x, own.weight, own.bias, own.added, {own.multiplier, own.softcap});
}

Scores LmHead::score(const Tensor& hidden, const Tensor& labels, Pass& pass, const ScoreOptions& options) const {
  const ops::HeadTerms own = terms(hidden, pass);
  ops::ScoreRequest request;
  request.temperature = options.temperature;
  request.entropy = options.entropy;
  request.entropy_gradient = options.entropy_gradient;
  request.correct = options.correct;
  request.mean_logit = options.mean_logit;
  request.square_sum = options.square_sum;
  request.kept = options.kept;
  request.uniform = options.uniform;
  request.log_normalizer = options.log_normalizer;
  request.chunk = options.chunk;
  request.multiplier = own.multiplier;
  request.softcap = own.softcap;
  ops::ScoreResult found = ops::score(own.x, own.weight, own.bias, labels, request, own.added);
  return {found.logps,   found.uniform,    found.log_normalizer, found.entropy,
          found.correct, found.mean_logit, found.square_sum};
}

}  // namespace easydel::nn
