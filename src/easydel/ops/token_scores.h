// Inputs of losses for tokens whose logits already exist: the numbers that ops/score.h computes from hidden states. It
// is the reference of score.h, differentiable by ATen.
#pragma once

#include <cstdint>

#include "easydel/tensor/torch.h"

namespace easydel::ops {

struct TokenScoreRequest {
  bool uniform = false, entropy = false;
  Tensor class_weights;                           // [vocabulary], weights of the terms of `uniform`; undefined: ones
  int64_t token_chunk = 0, vocabulary_chunk = 0;  // sizes of a chunk; 0: everything at once
};

struct TokenScores {
  Tensor logps, log_normalizer;  // fp32 [n]
  Tensor uniform;                // fp32 [n]: mean over the vocabulary of weighted log-probabilities
  Tensor entropy;                // fp32 [n], in nats
  Tensor correct;                // bool [n]: the label is the largest logit
};

// logits [n, vocabulary], labels int64 [n], every label in [0, vocabulary).
TokenScores token_scores(const Tensor& logits, const Tensor& labels, const TokenScoreRequest& request = {});

// The rest of a token's loss with label smoothing: the share of the label that is spread over the vocabulary.
enum class Smoothing : uint8_t {
  torch,  // over all entries: torch.nn.CrossEntropyLoss
  t5x     // over the other entries, less the minimum of that loss: EasyDeL's
};
// fp32 [n] from log p(label) and `uniform` as above.
Tensor smoothed_loss(const Tensor& logps, const Tensor& uniform, int64_t vocabulary, double smoothing, Smoothing form);

}  // namespace easydel::ops
