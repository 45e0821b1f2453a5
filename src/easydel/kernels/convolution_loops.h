// One token, or sixteen channels, of a short convolution and its gradients, for a vector type V. Included by
// loops_<set>.cpp only.
#pragma once

#include <algorithm>

#include "easydel/kernels/convolution_step.h"
#include "easydel/kernels/norm_loops.h"

namespace easydel::kernels {

template <class V>
struct ConvolutionLoops {
  using W = Wide<V>;
  using Math = WideMath<V>;
  using Rows = WideRows<V>;

  static void convolve(const ConvolutionStep& s, const ConvolutionRange& range, int64_t token, Output y) {
    const int64_t n = s.spec.channels, width = s.spec.width;
    for (int64_t c = 0; c < n; c += lanes) {
      W sum = s.spec.bias ? W::load(s.spec.bias + c, n - c) : W::zero();
      for (int64_t w = 0; w < width; ++w) {
        const int64_t t = token - width + 1 + w, held = t - range.begin + width - 1;
        W x = W::zero();
        if (t >= range.begin)
          x = Rows::load(s.x.dtype, s.x.at(t), c, n);
        else if (range.before)
          x = W::load(range.before + held * n + c, n - c);
        sum = Math::fma(W::load(s.taps + w * n + c, n - c), x, sum);
      }
      Rows::store(y.dtype, y.at(token), c, n, sum);
    }
  }

  // dx of one token, from the tokens that read it.
  static void convolve_back(const ConvolutionStep& s, const ConvolutionRange& range, Input dy, int64_t token,
                            Output dx) {
    const int64_t n = s.spec.channels, width = s.spec.width;
    const int64_t first = std::max<int64_t>(0, token + width - range.end);
    for (int64_t c = 0; c < n; c += lanes) {
      W sum = W::zero();
      for (int64_t w = first; w < width; ++w)
        sum = Math::fma(W::load(s.taps + w * n + c, n - c), Rows::load(dy.dtype, dy.at(token + width - 1 - w), c, n),
                        sum);
      Rows::store(dx.dtype, dx.at(token), c, n, sum);
    }
  }

  // Channels [c, c + 16) of the gradients of weight (transposed, [width, channels]) and bias, summed over all tokens.
  static void convolution_sums(const ConvolutionStep& s, Input dy, int64_t c, float* dtaps, float* dbias) {
    const int64_t n = s.spec.channels, width = s.spec.width;
    for (int64_t w = 0; w <= width; ++w) {
      const bool bias = w == width;
      if (bias ? !dbias : !dtaps) continue;
      const int64_t distance = bias ? 0 : width - 1 - w;
      W sum = W::zero();
      for (const ConvolutionRange& range : s.ranges)
        for (int64_t t = range.begin + distance; t < range.end; ++t) {
          const W d = Rows::load(dy.dtype, dy.at(t), c, n);
          sum = bias ? sum + d : Math::fma(d, Rows::load(s.x.dtype, s.x.at(t - distance), c, n), sum);
        }
      sum.store((bias ? dbias : dtaps + w * n) + c, n - c);
    }
  }
};

}  // namespace easydel::kernels
