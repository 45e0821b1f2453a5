// Selective state space token mixers: Mamba (arXiv 2312.00752) and Mamba-2 (arXiv 2405.21060).
#pragma once

#include <array>
#include <limits>
#include <optional>

#include "easydel/nn/convolution.h"
#include "easydel/nn/layer.h"
#include "easydel/nn/layers.h"

namespace easydel::nn {

struct MambaSpec {
  int64_t hidden = 0, inner = 0, state = 16, rank = 0, width = 4;
  bool bias = false, convolution_bias = true;
  ops::Activation activation = ops::Activation::silu;
  // Of steps, B and C, before they are used: none, norms without weights (falcon_mamba) or with weights (jamba).
  enum class Norms : uint8_t { none, plain, learned } norms = Norms::none;
  double epsilon = 1e-6;  // of those norms
  double deviation = 0.02;
  // Initial values of the convolution, dt_proj (weight, bias) and out_proj; normal values with `deviation` by default.
  std::optional<Initial> kernel, step_weight, output;
  Initial step_bias;
};

class Mamba final : public Layer {
 public:
  Mamba(const Scope& scope, const MambaSpec& spec, int64_t layer);
  LayerOutput forward(const Tensor& x, Pass& pass) const override;
  CacheLayer cache() const override;
  double mixing_flops(int64_t length) const override;

 private:
  Tensor normed(const Tensor& x, const std::optional<Norm>& norm) const;

  MambaSpec spec_;
  int64_t layer_, heads_;  // channels in heads of equal size, the unit of the scan
  Linear in_;
  ShortConvolution convolution_;
  Linear parts_;
  Parameter step_weight_, step_bias_, a_log_, skip_;
  std::optional<Norm> step_norm_, b_norm_, c_norm_;
  Linear out_;
};

struct Mamba2Spec {
  int64_t hidden = 0, inner = 0, heads = 0, head_dim = 0, state = 0, groups = 1, width = 4;
  bool bias = false, output_bias = false, convolution_bias = true;
  ops::Activation activation = ops::Activation::silu;
  double min_step = 0.0, max_step = std::numeric_limits<double>::infinity();
  // The gate multiplies before the norm, after it, or there is no norm.
  enum class Gate : uint8_t { before_norm, after_norm, no_norm } gate = Gate::before_norm;
  double epsilon = 1e-5;
  double input_multiplier = 1.0;
  std::array<double, 5> multipliers = {1, 1, 1, 1, 1};  // of gate, x, B, C and step
  Initial step_bias = Initial::ones();
  double deviation = 0.02;
  std::optional<Initial> kernel, output;  // of the convolution and of out_proj, as MambaSpec's
};

class Mamba2 final : public Layer {
 public:
  Mamba2(const Scope& scope, const Mamba2Spec& spec, int64_t layer);
  LayerOutput forward(const Tensor& x, Pass& pass) const override;
  CacheLayer cache() const override;
  double mixing_flops(int64_t length) const override;

 private:
  Tensor gated(const Tensor& y, const Tensor& gate) const;
  bool is_bounded() const;
  Tensor bounded(const Tensor& step, const Pass& pass) const;

  Mamba2Spec spec_;
  int64_t layer_, mixed_;  // channels of the convolution: x, B and C
  Linear in_;
  ShortConvolution convolution_;
  Parameter step_bias_, a_log_, norm_, skip_;
  Linear out_;
  Tensor multipliers_;  // [gate, x, B, C, step]; undefined: all 1
};

}  // namespace easydel::nn
