// The output layer as losses use it: log-probabilities of labels, computed in chunks of tokens. [tokens, vocabulary] is
// never in memory as a whole, in the forward or the backward.
#pragma once

#include <cstdint>

#include "easydel/tensor/torch.h"

namespace easydel::ops {
struct HeadTerms;  // ops/head_divergence.h
}

namespace easydel::nn {

class Pass;

struct ScoreOptions {
  double temperature = 1.0;       // logits are divided by it
  bool entropy = false;           // of the row's distribution
  bool entropy_gradient = false;  // whether the entropy is differentiable
  bool correct = false;           // whether the label is the greatest logit
  bool mean_logit = false;        // mean of the row's logits
  bool uniform = false;           // mean over the vocabulary of the log-probabilities (label smoothing)
  bool log_normalizer = false;    // log-sum-exp of the row (z-loss)
  bool square_sum = false;        // logarithm of the row's sum of squared probabilities
  int64_t chunk = 0;              // tokens at a time; 0: chosen by size
  // The tokens among which each row's distribution is (ops::ScoreRequest::kept); undefined: the whole vocabulary.
  Tensor kept = {};
};

struct Scores {
  Tensor logps;           // fp32 [n], differentiable: log p(label)
  Tensor uniform;         // fp32 [n], differentiable; undefined unless asked for
  Tensor log_normalizer;  // fp32 [n], differentiable; undefined unless asked for
  Tensor entropy;         // fp32 [n], differentiable with entropy_gradient; undefined unless asked for
  Tensor correct;         // bool [n]
  Tensor mean_logit;      // fp32 [n], no gradient
  Tensor square_sum;      // fp32 [n], no gradient; undefined unless asked for
};

// `pass` is the one that computed the hidden states.
class Head {
 public:
  virtual ~Head() = default;
  // hidden [n, size] -> logits fp32 [n, vocabulary]. For generation and scoring of few rows.
  virtual Tensor logits(const Tensor& hidden, Pass& pass) const = 0;
  // hidden [n, size], labels int64 [n], every label in [0, vocabulary). Gradients flow to hidden and to the head's
  // weight through logps, uniform and log_normalizer, and through the entropy where that is asked for.
  virtual Scores score(const Tensor& hidden, const Tensor& labels, Pass& pass,
                       const ScoreOptions& options = {}) const = 0;
  // What the logits of hidden states [n, size] are computed from, for ops that compare two heads; with gradients.
  virtual ops::HeadTerms terms(const Tensor& hidden, Pass& pass) const = 0;
  // The features of hidden states [n, size] that are multiplied by the vocabulary's rows; with gradients.
  virtual Tensor features(const Tensor& hidden, Pass& /*pass*/) const { return hidden; }
  virtual int64_t vocabulary() const = 0;
};

}  // namespace easydel::nn
