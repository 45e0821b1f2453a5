// The usual output layer: a product with a weight [vocabulary, size], often the embedding's.
#pragma once

#include "easydel/nn/head.h"
#include "easydel/nn/parameter.h"

namespace easydel::nn {

class LmHead final : public Head {
 public:
  explicit LmHead(Parameter weight, Parameter bias = {}) : weight_(weight), bias_(bias) {}
  Tensor logits(const Tensor& hidden) const override;
  Scores score(const Tensor& hidden, const Tensor& labels, const ScoreOptions& options = {}) const override;
  int64_t vocabulary() const override { return weight_.entry().shape[0]; }

 private:
  Parameter weight_, bias_;
};

}  // namespace easydel::nn
