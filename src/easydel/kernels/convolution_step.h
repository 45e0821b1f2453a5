// What the tasks of one convolution share: convolution.cpp creates them, the loops carry them out.
#pragma once

#include "easydel/kernels/convolution.h"

namespace easydel::kernels {

struct ConvolutionStep {
  const ConvolutionSpec& spec;
  std::span<const ConvolutionRange> ranges;
  Input x;
  const float* taps;  // the weight transposed, [width, channels]
};

}  // namespace easydel::kernels
