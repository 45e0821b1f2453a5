#include "easydel/ops/token_scores.h"

#include <ATen/ops/argmax.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/logsumexp.h>
#include <ATen/ops/stack.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "easydel/base/error.h"

namespace easydel::ops {
namespace {

Tensor normalizer(const Tensor& logits, int64_t chunk) {
  const int64_t vocabulary = logits.size(1);
  if (chunk <= 0 || chunk >= vocabulary) return at::logsumexp(logits, {1});
  std::vector<Tensor> parts;
  for (int64_t begin = 0; begin < vocabulary; begin += chunk)
    parts.push_back(at::logsumexp(logits.slice(1, begin, std::min(begin + chunk, vocabulary)), {1}));
  return at::logsumexp(at::stack(parts), {0});
}

TokenScores scores_of(const Tensor& given, const Tensor& labels, const TokenScoreRequest& request) {
  const Tensor logits = given.to(at::kFloat);
  TokenScores out;
  out.log_normalizer = normalizer(logits, request.vocabulary_chunk);
  out.logps = logits.gather(1, labels.unsqueeze(1)).squeeze(1) - out.log_normalizer;
  out.correct = logits.argmax(1) == labels;
  if (request.uniform && request.class_weights.defined())
    out.uniform = ((logits - out.log_normalizer.unsqueeze(1)) * request.class_weights).mean(1);
  else if (request.uniform)
    out.uniform = logits.mean(1) - out.log_normalizer;
  if (request.entropy)
    out.entropy = out.log_normalizer - (at::exp(logits - out.log_normalizer.unsqueeze(1)) * logits).sum(1);
  return out;
}

}  // namespace

TokenScores token_scores(const Tensor& logits, const Tensor& labels, const TokenScoreRequest& request) {
  check(logits.dim() == 2 && labels.dim() == 1 && labels.size(0) == logits.size(0), "token scores: logits are ",
        logits.sizes(), ", labels ", labels.sizes());
  const int64_t n = logits.size(0), chunk = request.token_chunk;
  if (chunk <= 0 || chunk >= n) return scores_of(logits, labels, request);
  std::vector<TokenScores> parts;
  for (int64_t begin = 0; begin < n; begin += chunk) {
    const int64_t end = std::min(begin + chunk, n);
    parts.push_back(scores_of(logits.slice(0, begin, end), labels.slice(0, begin, end), request));
  }
  const auto all = [&](Tensor TokenScores::*member) {
    std::vector<Tensor> tensors;
    for (const TokenScores& part : parts) tensors.push_back(part.*member);
    return tensors.front().defined() ? at::cat(tensors) : Tensor();
  };
  return {all(&TokenScores::logps), all(&TokenScores::log_normalizer), all(&TokenScores::uniform),
          all(&TokenScores::entropy), all(&TokenScores::correct)};
}

Tensor smoothed_loss(const Tensor& logps, const Tensor& uniform, int64_t vocabulary, double smoothing, Smoothing form) {
  if (smoothing == 0) return -logps;
  if (form == Smoothing::torch) return (smoothing - 1) * logps - smoothing * uniform;
  const double sure = 1 - smoothing, others = double(vocabulary - 1), low = smoothing / others;
  const double least = -(sure * std::log(sure) + others * low * std::log(low + 1e-20));
  return (low - sure) * logps - low * double(vocabulary) * uniform - least;
}

}  // namespace easydel::ops
