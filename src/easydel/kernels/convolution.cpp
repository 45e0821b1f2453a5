// Cuts short convolutions into tasks of tokens and channels; the loops are in convolution_loops.h.
#include "easydel/kernels/convolution.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "easydel/kernels/convolution_step.h"
#include "easydel/kernels/loops.h"
#include "easydel/kernels/memory.h"

namespace easydel::kernels {
namespace {

// Transposes [channels, width] into [width, channels], or back.
void transpose(const float* from, int64_t rows, int64_t columns, float* to) {
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c) to[c * rows + r] = from[r * columns + c];
}

// Calls each(range, token) for all tokens, about 16 thousand elements per task.
template <class Each>
void over_tokens(Executor& executor, const ConvolutionStep& step, const Each& each) {
  struct Part {
    const ConvolutionRange* range;
    int64_t begin, end;
  };
  thread_local std::vector<Part> parts;
  parts.clear();
  const int64_t tokens_per_part = std::max<int64_t>(1, (1 << 14) / std::max<int64_t>(step.spec.channels, 1));
  for (const ConvolutionRange& range : step.ranges)
    for (int64_t t = range.begin; t < range.end; t += tokens_per_part)
      parts.push_back({&range, t, std::min(range.end, t + tokens_per_part)});
  const Part* const all = parts.data();
  executor.run(int64_t(parts.size()), [&](int64_t i) {
    for (int64_t t = all[i].begin; t < all[i].end; ++t) each(*all[i].range, t);
  });
}

// The last width - 1 inputs; a shorter range has fewer of its own.
void keep(const ConvolutionStep& step, const ConvolutionRange& range) {
  const int64_t n = step.spec.channels, held = step.spec.width - 1, tokens = range.end - range.begin;
  const int64_t old = std::max<int64_t>(0, held - tokens);
  if (old > 0 && range.before)
    std::memmove(range.after, range.before + (held - old) * n, size_t(old * n) * sizeof(float));
  else
    std::fill_n(range.after, old * n, 0.0f);
  for (int64_t i = old; i < held; ++i)
    loops().pointwise.copy_row(step.x.at(range.end - held + i), step.x.dtype, n, range.after + i * n, DType::f32);
}

}  // namespace

void convolve(Executor& executor, const ConvolutionSpec& spec, std::span<const ConvolutionRange> ranges, Input x,
              Output y) {
  thread_local Scratch<float> of_thread;
  float* const taps = of_thread.at_least(spec.width * spec.channels);
  transpose(spec.weight, spec.channels, spec.width, taps);
  const ConvolutionStep step{spec, ranges, x, taps};
  const Loops& isa = loops();
  over_tokens(executor, step,
              [&](const ConvolutionRange& range, int64_t t) { isa.convolution.forward(step, range, t, y); });
  for (const ConvolutionRange& range : ranges)
    if (range.after) keep(step, range);
}

void convolve_backward(Executor& executor, const ConvolutionSpec& spec, std::span<const ConvolutionRange> ranges,
                       Input x, Input dy, Output dx, float* dweight, float* dbias) {
  constexpr int64_t sixteen = 16;
  thread_local Scratch<float> of_thread;
  const int64_t size = spec.width * spec.channels;
  float *const taps = of_thread.at_least(2 * size), *const dtaps = taps + size;
  transpose(spec.weight, spec.channels, spec.width, taps);
  const ConvolutionStep step{spec, ranges, x, taps};
  const Loops& isa = loops();
  if (dx.data)
    over_tokens(executor, step,
                [&](const ConvolutionRange& range, int64_t t) { isa.convolution.backward(step, range, dy, t, dx); });
  if (!dweight && !dbias) return;
  executor.run(divide_up(spec.channels, sixteen), [&](int64_t part) {
    isa.convolution.weight_gradient(step, dy, part * sixteen, dweight ? dtaps : nullptr, dbias);
  });
  if (dweight) transpose(dtaps, spec.width, spec.channels, dweight);
}

}  // namespace easydel::kernels
