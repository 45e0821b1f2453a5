// The divergence between the distributions of two output layers over one vocabulary, in chunks of tokens: [tokens,
// vocabulary] is never in memory as a whole, in the forward or the backward. The plain path, on logits that exist, is
// jensen_shannon of ops/divergence.h.
#pragma once

#include <cstdint>
#include <vector>

#include "easydel/ops/product.h"

namespace easydel::ops {

// What logits [n, vocabulary] are computed from: softcap * tanh(multiplier * (x W^T + bias + added) / softcap).
struct HeadTerms {
  Tensor x;  // [n, size]
  Matrix weight;
  Tensor bias = {};                 // [vocabulary]; undefined: none
  std::vector<Factors> added = {};  // further products, of dense weights
  double multiplier = 1.0;
  double softcap = 0.0;  // 0: off
};

struct DivergenceRequest {
  // Of the generalized Jensen-Shannon divergence (arXiv:2306.13649): 0 is KL(teacher || student), 1 KL(student ||
  // teacher), between them both to the mixture beta * teacher + (1 - beta) * student.
  double beta = 0.0;
  double temperature = 1.0;  // both models' logits are divided by it
  // The teacher's distribution is that of its k likeliest tokens, the others have probability 0; 0: all. The student's
  // is always whole. Not with beta 1, where the divergence would be infinite.
  int64_t teacher_top_k = 0;
  bool entropy = false;
  int64_t chunk = 0;  // tokens per chunk; 0: chosen by size
};

struct DivergenceResult {
  Tensor divergence;  // fp32 [n]
  Tensor entropy;     // fp32 [n], in nats: the student's at the temperature, no gradient; undefined unless requested
};

// Gradients flow to what the student's logits are computed from; the teacher's get none. The sizes of the two models
// may differ. Of two vocabularies that are padded to different lengths the tokens that both have are compared.
DivergenceResult head_divergence(const HeadTerms& student, const HeadTerms& teacher, const DivergenceRequest& request);

}  // namespace easydel::ops
