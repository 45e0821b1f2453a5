#include "easydel/nn/masked_head.h"

#include "easydel/ops/head_divergence.h"

namespace easydel::nn {

MaskedHead::MaskedHead(const Scope& root, int64_t vocabulary, int64_t size, const MaskedHeadSpec& spec, Parameter tied)
    : activation_(spec.activation),
      dense_(root.head() / spec.dense, size, size, {.bias = spec.dense_bias, .deviation = spec.deviation}),
      norm_(root.head() / spec.norm, size, spec.norm_options) {
  const auto bias_of = [&](const std::string& name, const std::string& also) {
    ParameterOptions options{.split = Split::none, .initial = Initial::zeros()};
    for (const std::string& tensor : {name, also})
      if (!tensor.empty()) options.sources.emplace_back().tensors = {tensor};
    const size_t dot = name.rfind('.');
    return (root.head() / name.substr(0, dot)).parameter(name.substr(dot + 1), {vocabulary}, Role::bias, options);
  };
  const std::string own_bias = spec.decoder + ".bias";
  Parameter weight = tied, bias;
  if (!tied)
    weight = (root.head() / spec.decoder)
                 .parameter("weight", {vocabulary, size}, Role::weight,
                            {Split::vocabulary, Initial::normal(spec.output_deviation), "kernel", false});
  const bool shares = !spec.shared_bias.empty();
  if (tied && shares)
    bias = bias_of(spec.shared_bias, own_bias);
  else if (spec.output_bias)
    bias = bias_of(own_bias, spec.shared_bias);
  if (!tied && shares) bias_of(spec.shared_bias, "");
  output_.emplace(weight, bias, 1.0, 0.0, tied ? (root.head() / spec.decoder).reader_of(tied) : nullptr);
}

Tensor MaskedHead::features(const Tensor& hidden, Pass& pass) const {
  return norm_(ops::activate(dense_(hidden, pass, "head_dense"), activation_));
}

Tensor MaskedHead::logits(const Tensor& hidden, Pass& pass) const {
  const at::NoGradGuard no_gradient;
  return output_->logits(features(hidden, pass), pass);
}

Scores MaskedHead::score(const Tensor& hidden, const Tensor& labels, Pass& pass, const ScoreOptions& options) const {
  return output_->score(features(hidden, pass), labels, pass, options);
}

ops::HeadTerms MaskedHead::terms(const Tensor& hidden, Pass& pass) const {
  return output_->terms(features(hidden, pass), pass);
}

}  // namespace easydel::nn
