// The usual output layer: a product with a weight [vocabulary, size], often the embedding's. Logits may be scaled and
// soft-capped.
#pragma once

#include "easydel/nn/head.h"
#include "easydel/nn/parameter.h"
#include "easydel/ops/product.h"

namespace easydel::nn {

class LmHead final : public Head {
 public:
  // Logits are softcap * tanh(multiplier * (x W^T + bias) / softcap); a softcap of 0: without it.
  // `reader`: how products read the weight; null: as the parameter's entry says.
  explicit LmHead(Parameter weight, Parameter bias = {}, double multiplier = 1.0, double softcap = 0.0,
                  std::shared_ptr<Weight> reader = nullptr)
      : weight_(weight), bias_(bias), multiplier_(multiplier), softcap_(softcap), reader_(std::move(reader)) {}
  Tensor logits(const Tensor& hidden, Pass& pass) const override;
  Scores score(const Tensor& hidden, const Tensor& labels, Pass& pass, const ScoreOptions& options = {}) const override;
  ops::HeadTerms terms(const Tensor& hidden, Pass& pass) const override;
  int64_t vocabulary() const override { return weight_.entry().shape[0]; }

 private:
  Parameter weight_, bias_;
  double multiplier_, softcap_;
  std::shared_ptr<Weight> reader_;
};

}  // namespace easydel::nn
