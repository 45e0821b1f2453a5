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

constexpr int64_t steps = 65536;

// The code of each of the values -1 to 1 in equal steps, the nearest number's; of two as near the lower one's.
std::array<uint8_t, steps> make_codes(const std::array<float, 256>& map) {
  std::array<uint8_t, steps> out;
  for (int64_t i = 0; i < steps; ++i) {
    const float value = float(i) / 32767.5f - 1.0f;
    const int64_t next = std::ranges::lower_bound(map, value) - map.begin();
    const int64_t right = std::min<int64_t>(next, 255), left = std::max<int64_t>(next - 1, 0);
    const bool is_right = std::fabs(map[size_t(right)] - value) < std::fabs(value - map[size_t(left)]);
    out[size_t(i)] = uint8_t(is_right ? right : left);
  }
  return out;
}

const std::array<uint8_t, steps>& codes_of_steps(bool has_sign) {
  static const std::array<uint8_t, steps> with = make_codes(dynamic_map(true)),
                                          without = make_codes(dynamic_map(false));
  return has_sign ? with : without;
}

// Calls work(block) for all blocks, some at a time, so that handing them out costs little.
template <class Work>
void for_blocks(kernels::Executor& executor, int64_t blocks, const Work& work) {
  constexpr int64_t together = 64;
  executor.run((blocks + together - 1) / together, [&](int64_t task) {
    for (int64_t b = task * together; b < std::min((task + 1) * together, blocks); ++b) work(b);
  });
}

}  // namespace

const std::array<float, 256>& dynamic_map(bool has_sign) {
  static const std::array<float, 256> with = make_map(true), without = make_map(false);
  return has_sign ? with : without;
}

void quantize_dynamic(kernels::Executor& executor, bool has_sign, const float* values, int64_t count, int64_t block,
                      uint8_t* codes, float* scales) {
  const std::array<uint8_t, steps>& table = codes_of_steps(has_sign);
  for_blocks(executor, (count + block - 1) / block, [&](int64_t b) {
    const int64_t first = b * block, end = std::min(first + block, count);
    float most = 0;
    for (int64_t i = first; i < end; ++i) most = std::max(most, std::fabs(values[i]));
    scales[b] = most;
    if (most == 0) return void(std::fill(codes + first, codes + end, uint8_t(0)));
    const float inverse = 1.0f / most;
    for (int64_t i = first; i < end; ++i) {
      const float scaled = std::clamp(values[i] * inverse, -1.0f, 1.0f), at = (scaled + 1.0f) * 32767.5f + 0.5f;
      codes[i] = table[at >= 0 ? size_t(std::min(at, float(steps - 1))) : 0];
    }
  });
}

void dequantize_dynamic(kernels::Executor& executor, bool has_sign, const uint8_t* codes, const float* scales,
                        int64_t count, int64_t block, float* values) {
  const std::array<float, 256>& map = dynamic_map(has_sign);
  for_blocks(executor, (count + block - 1) / block, [&](int64_t b) {
    for (int64_t i = b * block; i < std::min((b + 1) * block, count); ++i) values[i] = map[codes[i]] * scales[b];
  });
}

}  // namespace easydel::quant
