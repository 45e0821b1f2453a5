// Blocks of values to dynamic codes and back, for a vector type V. Included by loops_<set>.cpp only.
#pragma once

#include <algorithm>

#include "easydel/kernels/loops.h"
#include "easydel/kernels/wide.h"

namespace easydel::kernels {

// `count` numbers at a time, by tables. Instruction sets that compute more at once have their own for their V.
template <class V>
struct DynamicEncoder {
  static constexpr int64_t count = 1;
  const DynamicCodes& map;
  float inverse;

  DynamicEncoder(const DynamicCodes& of, float scale) : map(of), inverse(1.0f / scale) {}
  void operator()(const float* x, uint8_t* to) const {
    constexpr float last = float(DynamicCodes::steps - 1);
    const float step = (std::clamp(*x * inverse, -1.0f, 1.0f) + 1.0f) * 32767.5f + 0.5f;
    *to = map.codes[step >= 0 ? size_t(std::min(step, last)) : 0];
  }
};
template <class V>
struct DynamicDecoder {
  static constexpr int64_t count = 1;
  const DynamicCodes& map;
  float scale;

  DynamicDecoder(const DynamicCodes& of, float by) : map(of), scale(by) {}
  void operator()(const uint8_t* codes, float* to) const { *to = map.numbers[*codes] * scale; }
};

template <class V>
struct DynamicCodeLoops {
  using W = Wide<V>;
  using Math = WideMath<V>;

  static float encode(const DynamicCodes& map, const float* values, int64_t n, uint8_t* codes) {
    W most = W::zero();
    for (int64_t i = 0; i < n; i += lanes) most = Math::max(Math::abs(W::load(values + i, n - i)), most);  // no NaN
    const float scale = Math::top(most);
    if (scale == 0)
      std::fill_n(codes, n, uint8_t(0));
    else
      over<DynamicEncoder>(map, scale, n, values, codes);
    return scale;
  }
  static void decode(const DynamicCodes& map, const uint8_t* codes, float scale, int64_t n, float* values) {
    over<DynamicDecoder>(map, scale, n, codes, values);
  }

 private:
  struct Plain {};

  template <template <class> class Coder, class From, class To>
  static void over(const DynamicCodes& map, float scale, int64_t n, const From* from, To* to) {
    const Coder<V> some(map, scale);
    const Coder<Plain> one(map, scale);
    int64_t i = 0;
    for (; i + some.count <= n; i += some.count) some(from + i, to + i);
    for (; i < n; ++i) one(from + i, to + i);
  }
};

}  // namespace easydel::kernels
