// The short causal depthwise convolution before a recurrence, and the initial distribution of a recurrence's steps.
#pragma once

#include "easydel/nn/pass.h"
#include "easydel/nn/scope.h"

namespace easydel::nn {

// The distribution of the steps of a new layer: log-uniform in [least, most], never below floor. Values are biases
// before softplus.
struct TimeSteps {
  double least = 0.001, most = 0.1, floor = 1e-4;
  Initial initial() const;
};

class ShortConvolution {
 public:
  // weight [channels, 1, width] as torch's Conv1d has it, with initial values `initial`.
  ShortConvolution(const Scope& scope, int64_t channels, int64_t width, bool bias, const Initial& initial)
      : channels_(channels), width_(width) {
    weight_ =
        scope.parameter("weight", {channels, 1, width}, Role::other, {.initial = initial, .easydel_name = "kernel"});
    if (bias) bias_ = scope.parameter("bias", {channels}, Role::bias, {.initial = Initial::zeros()});
  }

  // x [tokens, channels] -> [tokens, channels]; `state` is the index of its state in the cached layer.
  Tensor operator()(const Tensor& x, int64_t layer, size_t state, Pass& pass) const {
    const auto value = [&](const Parameter& p) { return p ? p.value().to(x.scalar_type()) : Tensor(); };
    return pass.stream().convolve(layer, state, x, value(weight_).view({channels_, width_}), value(bias_));
  }
  std::vector<int64_t> state() const { return {width_ - 1, channels_}; }

 private:
  int64_t channels_, width_;
  Parameter weight_, bias_;
};

}  // namespace easydel::nn
