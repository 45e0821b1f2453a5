// What losses need of tokens whose logits already exist: the same numbers that ops/score.h computes from hidden states.
// The reference of that, differentiable by ATen.
#pragma once

#include <cstdint>

#include "easydel/tensor/torch.h"

namespace easydel::ops {

struct TokenScoreRequest {
  bool uniform = false, entropy = false;
  Tensor class_weights;                           // [vocabulary], weighs the terms of `uniform`; undefined: ones
  int64_t token_chunk = 0, vocabulary_chunk = 0;  // how much is computed at a time; 0: all
};

struct TokenScores {
  Tensor logps, log_normalizer;  // fp32 [n]
  Tensor uniform;                // fp32 [n]: mean over the vocabulary of weighted log-probabilities
  Tensor entropy;                // fp32 [n], in nats
  Tensor correct;                // bool [n]: the label is the greatest logit
};

// logits [n, vocabulary], labels int64 [n], every label in [0, vocabulary).
TokenScores token_scores(const Tensor& logits, const Tensor& labels, const TokenScoreRequest& request = {});

// What is left of a token's loss when a share of its label is spread over the vocabulary.
enum class Smoothing : uint8_t {
  torch,  // over all entries: torch.nn.CrossEntropyLoss
  t5x     // over the other entries, less the least loss that there is then: EasyDeL's
};
// fp32 [n] from log p(label) and `uniform` as above.
Tensor smoothed_loss(const Tensor& logps, const Tensor& uniform, int64_t vocabulary, double smoothing, Smoothing form);

}  // namespace easydel::ops
