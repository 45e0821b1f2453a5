// What the parts of one convolution share, between convolution.cpp, which cuts it, and its loops.
#pragma once

#include "easydel/kernels/convolution.h"

namespace easydel::kernels {

struct ConvolutionStep {
  const ConvolutionSpec& spec;
  std::span<const ConvolutionRange> ranges;
  Input x;
  const float* taps;  // the weight turned, [width, channels]
};

}  // namespace easydel::kernels
