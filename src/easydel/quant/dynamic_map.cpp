#include "easydel/quant/dynamic_map.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace easydel::quant {
namespace {

// The number of bits of the exponent that a code may have.
constexpr int exponents = 7;

// torch.linspace(0.1, 1, count) in fp32: counted from the nearer end.
float point(int64_t i, int64_t count) {
  const float start = 0.1f, end = 1.0f, step = (end - start) / float(count - 1);
  return i < count / 2 ? std::fma(step, float(i), start) : std::fma(-step, float(count - i - 1), end);
}

std::array<float, 256> make_map(bool has_sign) {
  std::vector<float> all = {0.0f, 1.0f};
  for (int e = 0; e < exponents; ++e) {
    const float power = float(std::pow(10.0, e - (exponents - 1)));
    const int64_t points = (int64_t(1) << (has_sign ? e : e + 1)) + 1;
    for (int64_t i = 0; i + 1 < points; ++i) {
      const float value = power * ((point(i, points) + point(i + 1, points)) / 2.0f);
      all.push_back(value);
      if (has_sign) all.push_back(-value);
    }
  }
  std::ranges::sort(all);
  std::array<float, 256> out;
  std::ranges::copy(all, out.begin());
  return out;
}

}  // namespace

const kernels::DynamicCodes& dynamic_codes(bool has_sign) {
  static const kernels::DynamicCodes with(make_map(true)), without(make_map(false));
  return has_sign ? with : without;
}

const std::array<float, 256>& dynamic_map(bool has_sign) { return dynamic_codes(has_sign).numbers; }

void quantize_dynamic(kernels::Executor& executor, bool has_sign, const float* values, int64_t count, int64_t block,
                      uint8_t* codes, float* scales) {
  kernels::encode_blocks(executor, dynamic_codes(has_sign), values, count, block, codes, scales);
}

void dequantize_dynamic(kernels::Executor& executor, bool has_sign, const uint8_t* codes, const float* scales,
                        int64_t count, int64_t block, float* values) {
  kernels::decode_blocks(executor, dynamic_codes(has_sign), codes, scales, count, block, values);
}

}  // namespace easydel::quant
