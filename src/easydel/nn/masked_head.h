// The output layer of masked language models: a dense layer, its activation and its norm, then the usual head.
#pragma once

#include <string>

#include "easydel/nn/head.h"
#include "easydel/nn/layers.h"
#include "easydel/nn/lm_head.h"

namespace easydel::nn {

struct MaskedHeadSpec {
  std::string dense, norm;  // names, from the model's root
  std::string decoder;      // of the output's weight and bias
  std::string
      shared_bias;  // a tied output's bias; an untied one has it beside its own and does not use it. Empty: none
  bool dense_bias = true, output_bias = true;
  ops::Activation activation = ops::Activation::gelu;
  Norm::Options norm_options;
  double deviation = 0.02, output_deviation = 0.02;
};

class MaskedHead final : public Head {
 public:
  // `tied`: the embedding's weight [vocabulary, size], which the output reuses; without one it has its own.
  MaskedHead(const Scope& root, int64_t vocabulary, int64_t size, const MaskedHeadSpec& spec, Parameter tied);
  Tensor logits(const Tensor& hidden, Pass& pass) const override;
  Scores score(const Tensor& hidden, const Tensor& labels, Pass& pass, const ScoreOptions& options = {}) const override;
  ops::HeadTerms terms(const Tensor& hidden, Pass& pass) const override;
  Tensor features(const Tensor& hidden, Pass& pass) const override;
  int64_t vocabulary() const override { return output_->vocabulary(); }

 private:
  ops::Activation activation_;
  Linear dense_;
  Norm norm_;
  std::optional<LmHead> output_;
};

}  // namespace easydel::nn
