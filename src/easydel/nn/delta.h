// Token mixers by the gated delta rule (arXiv 2412.06464), and Kimi's, whose state decays at a rate of its own in each
// channel (arXiv 2510.26692).
#pragma once

#include "easydel/nn/convolution.h"
#include "easydel/nn/layer.h"
#include "easydel/nn/layers.h"

namespace easydel::nn {

struct DeltaSpec {
  int64_t hidden = 0, k_heads = 0, v_heads = 0, k_dim = 0, v_dim = 0, width = 4;
  ops::Activation activation = ops::Activation::silu;  // after the convolution
  double epsilon = 1e-6;                               // of the norm of the result
  double deviation = 0.02, output_deviation = 0.02;
};

class GatedDelta final : public Layer {
 public:
  // `fused`: in_proj_qkvz and in_proj_ba hold, key head by key head, what are otherwise in_proj_qkv, _z, _b and _a.
  GatedDelta(const Scope& scope, const DeltaSpec& spec, bool fused, int64_t layer);
  LayerOutput forward(const Tensor& x, Pass& pass) const override;
  CacheLayer cache() const override;
  double mixing_flops(int64_t length) const override;

 private:
  struct Projected {
    Tensor qkv;   // [tokens, 2 k_heads k_dim + v_heads v_dim]
    Tensor gate;  // [tokens, v_heads, v_dim]
    Tensor b, a;  // [tokens, v_heads]
  };
  Projected project(const Tensor& x, Pass& pass) const;

  DeltaSpec spec_;
  bool fused_;
  int64_t layer_, keys_, values_;  // channels of q or k, and of v
  std::optional<Linear> qkv_, z_, b_, a_;
  ShortConvolution convolution_;
  Parameter step_bias_, a_log_;
  Norm norm_;
  Linear out_;
};

// k_heads = v_heads, k_dim = v_dim.
class KimiDelta final : public Layer {
 public:
  KimiDelta(const Scope& scope, const DeltaSpec& spec, int64_t layer);
  LayerOutput forward(const Tensor& x, Pass& pass) const override;
  CacheLayer cache() const override;
  double mixing_flops(int64_t length) const override;

 private:
  DeltaSpec spec_;
  int64_t layer_, channels_;
  Linear q_, k_, v_;
  ShortConvolution q_convolution_, k_convolution_, v_convolution_;
  Linear forget_in_, forget_out_;
  Parameter step_bias_, a_log_;
  Linear beta_, gate_in_, gate_out_;
  Norm norm_;
  Linear out_;
};

}  // namespace easydel::nn
