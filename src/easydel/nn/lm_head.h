// The usual output layer: a product with a weight [vocabulary, size], often the embedding's; its logits may be scaled
// and soft-capped.
#pragma once

#include "easydel/nn/head.h"
#include "easydel/nn/parameter.h"
#include "easydel/ops/product.h"

namespace easydel::nn {

class LmHead final : public Head {
 public:
  // Logits are softcap * tanh(multiplier * (x W^T + bias) / softcap); a softcap of 0: without it.
  // `read`: the form in which it reads the weight; null: the parameter's own.
  explicit LmHead(Parameter weight, Parameter bias = {}, double multiplier = 1.0, double softcap = 0.0,
                  std::shared_ptr<Weight> read = nullptr)
      : weight_(weight), bias_(bias), multiplier_(multiplier), softcap_(softcap), read_(std::move(read)) {}
  Tensor logits(const Tensor& hidden) const override;
  Scores score(const Tensor& hidden, const Tensor& labels, const ScoreOptions& options = {}) const override;
  int64_t vocabulary() const override { return weight_.entry().shape[0]; }

 private:
  ops::Matrix matrix() const;

  Parameter weight_, bias_;
  double multiplier_, softcap_;
  std::shared_ptr<Weight> read_;
};

}  // namespace easydel::nn
