// The short causal convolution before a recurrence (arXiv 2312.00752): each channel by itself over its last few tokens,
//   y[t, c] = bias[c] + sum over w of weight[c, w] x[t - width + 1 + w, c],
// of which tokens before the sequence count as zero, or as what the sequence had before the call.
//
// An element is one chain of FMAs in ascending w from the bias (or +0), rounded once: the same bits whole, cut anyhow
// or one token at a time, on every instruction set and any number of threads. Gradients are sums in fp32 in a fixed
// order.
#pragma once

#include <cstdint>
#include <span>

#include "easydel/kernels/executor.h"
#include "easydel/kernels/number.h"

namespace easydel::kernels {

struct ConvolutionSpec {
  int64_t channels = 0, width = 0;
  const float* weight = nullptr;  // [channels, width]
  const float* bias = nullptr;    // [channels]; null: none
};

// Tokens [begin, end) of one sequence. `before` (null: none) are the width - 1 inputs before them, oldest first, [width
// - 1, channels]; `after` (null: not wanted), which may be the same memory, gets those that the next call needs.
struct ConvolutionRange {
  int64_t begin = 0, end = 0;
  const float* before = nullptr;
  float* after = nullptr;
};

// x, y [tokens, channels]; not in place.
void convolve(Executor& executor, const ConvolutionSpec& spec, std::span<const ConvolutionRange> ranges, Input x,
              Output y);

// dx [tokens, channels] (data null: not wanted); dweight [channels, width] and dbias [channels] (null: not wanted) are
// written. Without inputs before the ranges.
void convolve_backward(Executor& executor, const ConvolutionSpec& spec, std::span<const ConvolutionRange> ranges,
                       Input x, Input dy, Output dx, float* dweight, float* dbias);

}  // namespace easydel::kernels
