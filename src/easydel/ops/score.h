// Log-probabilities of labels under an output layer, in chunks of tokens: [tokens, vocabulary] is never in memory as a
// whole. The forward keeps one number per token; the backward recomputes each chunk of logits.
#pragma once

#include <span>
#include <vector>

#include "easydel/ops/product.h"

namespace easydel::ops {

struct ScoreRequest {
  double temperature = 1.0;  // logits are divided by it
  double multiplier = 1.0;   // multiplies the products, before the temperature
  double softcap = 0.0;      // after the multiplier: softcap * tanh(logit / softcap); 0: off
  bool entropy = false, correct = false, mean_logit = false, uniform = false, log_normalizer = false;
  bool entropy_gradient = false;  // the entropy is differentiable; costs a copy of a chunk of logits in the backward
  bool square_sum = false;        // the logarithm of the sum of the squared probabilities
  int64_t chunk = 0;              // tokens per chunk; 0: chosen by size
  // The tokens among which each row's distribution is: a flat list, int64 on the CPU, of each row its number of tokens
  // and then their ids. A row with 0 has the whole vocabulary; undefined: all rows have. The others get no gradient.
  Tensor kept = {};
};

struct ScoreResult {
  Tensor logps, uniform, log_normalizer;   // fp32 [n], differentiable
  Tensor entropy;                          // fp32 [n]; differentiable with entropy_gradient
  Tensor correct, mean_logit, square_sum;  // no gradient; undefined unless requested
};

// hidden [n, size], weight [vocabulary, size], bias [vocabulary] or undefined, labels int64 [n]. `added`: further
// products that belong to the logits, of dense weights; gradients flow to their x and their masters, too.
ScoreResult score(const Tensor& hidden, const Matrix& weight, const Tensor& bias, const Tensor& labels,
                  const ScoreRequest& request, const std::vector<Factors>& added = {});

// What a logit counts that is not among the kept ones: its probability is exactly 0, and 0 times it is 0.
inline constexpr float left_out_logit = -1e30F;

// The log-probabilities that score() takes from these fp32 logits [n, vocabulary], to the bit: fp32 [n], no gradient.
Tensor label_logps(const Tensor& logits, const Tensor& labels);

// Writes e^(x - top) of each of the numbers, as the kernels compute it: within 2 units in the last place, and 0 below
// 2^-126. On this thread.
void exponentials(std::span<const float> numbers, float top, std::span<float> out);

}  // namespace easydel::ops
