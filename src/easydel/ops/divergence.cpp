#include "easydel/ops/divergence.h"

#include <ATen/ops/exp.h>
#include <ATen/ops/expm1.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/logaddexp.h>

#include <cmath>

namespace easydel::ops {
namespace {

// The terms of KL(p || q).
Tensor terms(const Tensor& p, const Tensor& q) { return at::exp(p) * (p - q); }

}  // namespace

Tensor jensen_shannon(const Tensor& student_logits, const Tensor& teacher_logits, double beta, double temperature) {
  const Tensor student = at::log_softmax(student_logits.to(at::kFloat) / temperature, -1);
  const Tensor teacher = at::log_softmax(teacher_logits.to(at::kFloat) / temperature, -1);
  if (beta == 0) return terms(teacher, student);
  if (beta == 1) return terms(student, teacher);
  const Tensor mixture = at::logaddexp(student + std::log1p(-beta), teacher + std::log(beta));
  return beta * terms(teacher, mixture) + (1 - beta) * terms(student, mixture);
}

Tensor kl_estimate(KlEstimator kind, const Tensor& logps, const Tensor& reference_logps) {
  const Tensor ratio = logps - reference_logps;
  switch (kind) {
    case KlEstimator::k1:
      return ratio;
    case KlEstimator::k2:
      return ratio.square() / 2;
    case KlEstimator::k3:
      return at::expm1(-ratio) + ratio;
  }
  return ratio;
}

}  // namespace easydel::ops
