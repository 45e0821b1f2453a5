// Distances between two distributions over the vocabulary, in the forms that distillation and reinforcement learning
// use.
#pragma once

#include <cstdint>

#include "easydel/tensor/torch.h"

namespace easydel::ops {

// The generalized Jensen-Shannon divergence of arXiv 2306.13649, entry by entry, fp32 [..., vocabulary]: beta 0 is
// KL(teacher || student), 1 is KL(student || teacher), between them both to the mixture beta * teacher + (1 - beta) *
// student. Logits are divided by the temperature. With a gradient to both.
Tensor jensen_shannon(const Tensor& student_logits, const Tensor& teacher_logits, double beta,
                      double temperature = 1.0);

// Estimators of KL(policy || reference) from log-probabilities of samples of the policy
// (http://joschu.net/blog/kl-approx.html): the log-ratio, half its square, and the one that is never negative.
enum class KlEstimator : uint8_t { k1, k2, k3 };
Tensor kl_estimate(KlEstimator kind, const Tensor& logps, const Tensor& reference_logps);

}  // namespace easydel::ops
