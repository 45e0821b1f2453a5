// A token mixer: a short convolution between two gates (LFM2, arXiv 2511.23404).
#pragma once

#include "easydel/nn/convolution.h"
#include "easydel/nn/layer.h"
#include "easydel/nn/layers.h"

namespace easydel::nn {

class GatedConvolution final : public Layer {
 public:
  GatedConvolution(const Scope& scope, int64_t size, int64_t width, bool bias, double deviation, int64_t layer)
      : size_(size),
        layer_(layer),
        in_(scope / "in_proj", size, 3 * size, {.bias = bias, .deviation = deviation}),
        convolution_(scope / "conv", size, width, bias, Initial::normal(deviation)),
        out_(scope / "out_proj", size, size, {.bias = bias, .deviation = deviation}) {}

  LayerOutput forward(const Tensor& x, Pass& pass) const override {
    const Tensor all = in_(pass.stream().visible(x), pass, "mixer_in");
    const auto part = [&](int64_t i) { return all.narrow(1, i * size_, size_); };
    const Tensor mixed = part(1) * convolution_(part(0) * part(2), layer_, 0, pass);
    return {out_(mixed, pass, "mixer_output"), {}};
  }
  CacheLayer cache() const override { return {.states = {convolution_.state()}}; }

 private:
  int64_t size_, layer_;
  Linear in_;
  ShortConvolution convolution_;
  Linear out_;
};

}  // namespace easydel::nn
