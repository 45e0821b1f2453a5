// The short causal convolution before a recurrence (arXiv 2312.00752), over the last few tokens of each channel:
//   y[t, c] = bias[c] + sum over w of weight[c, w] x[t - width + 1 + w, c].
// Tokens before the sequence count as zero, or are the inputs that the previous call left.
//
// An element is one chain of FMAs in ascending w from the bias (or +0), rounded once: whole sequences, any chunks and
// single tokens have the same bits, on every instruction set and any number of threads. Gradients are fp32 sums in a
// fixed order.
#pragma once

#include <cstdint>
#include <span>

#include "easydel/kernels/dtype.h"
#include "easydel/kernels/executor.h"

namespace easydel::kernels {

struct ConvolutionSpec {
  int64_t channels = 0, width = 0;
  const float* weight = nullptr;  // [channels, width]
  const float* bias = nullptr;    // [channels]; null: none
};

// Tokens [begin, end) of one sequence. `before` (null: none) holds the width - 1 inputs before them, oldest first,
// [width - 1, channels]. `after` (may be null) gets those that the next call needs, and may be the same memory.
struct ConvolutionRange {
  int64_t begin = 0, end = 0;
  const float* before = nullptr;
  float* after = nullptr;
};

// x, y [tokens, channels]; must not overlap.
void convolve(Executor& executor, const ConvolutionSpec& spec, std::span<const ConvolutionRange> ranges, Input x,
              Output y);

// dx [tokens, channels] (data may be null); dweight [channels, width] and dbias [channels] (may be null) are
// overwritten. Ranges must have no inputs before them.
void convolve_backward(Executor& executor, const ConvolutionSpec& spec, std::span<const ConvolutionRange> ranges,
                       Input x, Input dy, Output dx, float* dweight, float* dbias);

}  // namespace easydel::kernels
