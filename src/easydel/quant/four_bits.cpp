#include "easydel/quant/four_bits.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "easydel/kernels/quantized.h"
#include "easydel/quant/dynamic_map.h"

namespace easydel::quant {
namespace {

// The numbers of a table in order, and the middles between them.
struct Order {
  std::array<uint8_t, 16> codes;
  std::array<float, 15> between;
};

Order order_of(const std::array<float, 16>& table) {
  Order out;
  std::iota(out.codes.begin(), out.codes.end(), uint8_t(0));
  std::ranges::stable_sort(out.codes, {}, [&](uint8_t code) { return table[code]; });
  for (size_t i = 0; i < 15; ++i) out.between[i] = (table[out.codes[i]] + table[out.codes[i + 1]]) / 2.0f;
  return out;
}

// The code of the nearest number, of two as near the lower.
uint8_t code_of(const Order& order, float scaled) {
  const float value = std::clamp(scaled, -1.0f, 1.0f);
  size_t rank = 0;
  for (const float middle : order.between) rank += value > middle;
  return order.codes[rank];
}

}  // namespace

std::string_view name_of(FourBits kind) { return kind == FourBits::nf4 ? "nf4" : "fp4"; }

const std::array<float, 16>& table_of(FourBits kind) {
  static constexpr std::array<float, 16> fp4 = {
      0.0f / 12, 0.0625f / 12,  8.0f / 12,  12.0f / 12,  4.0f / 12,  6.0f / 12,  2.0f / 12,  3.0f / 12,
      0.0f / 12, -0.0625f / 12, -8.0f / 12, -12.0f / 12, -4.0f / 12, -6.0f / 12, -2.0f / 12, -3.0f / 12};
  return kind == FourBits::nf4 ? kernels::nf4_table() : fp4;
}

void quantize_four_bits(kernels::Executor& executor, FourBits kind, const float* values, int64_t count, int64_t block,
                        uint8_t* codes, float* scales) {
  const Order order = order_of(table_of(kind));
  constexpr float least = 1e-38f;
  executor.run((count + block - 1) / block, [&](int64_t b) {
    const int64_t first = b * block, end = std::min(first + block, count);
    float most = 0;
    for (int64_t i = first; i < end; ++i) most = std::max(most, std::fabs(values[i]));
    // A short last block is divided by its scale, the others are multiplied by its inverse.
    const bool whole = end - first == block;
    const float divisor = std::max(most, least), inverse = 1.0f / divisor;
    scales[b] = whole ? most : divisor;
    for (int64_t i = first; i < end; ++i) codes[i] = code_of(order, whole ? values[i] * inverse : values[i] / divisor);
  });
}

std::vector<uint8_t> pack_four_bits(FourBits kind, const uint8_t* codes, int64_t count) {
  std::vector<uint8_t> out(size_t((count + 1) / 2));
  const uint8_t padding = code_of(order_of(table_of(kind)), 0);
  for (int64_t i = 0; i < count; i += 2)
    out[size_t(i / 2)] = uint8_t(codes[i] << 4 | (i + 1 < count ? codes[i + 1] : padding));
  return out;
}

float NestedScales::at(int64_t i) const {
  return dynamic_map(true)[codes[size_t(i)]] * scales[size_t(i / nested_block)] + offset;
}

NestedScales nest_scales(kernels::Executor& executor, const std::vector<float>& scales, float mean) {
  const int64_t count = int64_t(scales.size());
  NestedScales out{std::vector<uint8_t>(scales.size()),
                   std::vector<float>(size_t((count + nested_block - 1) / nested_block)), mean};
  std::vector<float> less = scales;
  for (float& scale : less) scale -= mean;
  quantize_dynamic(executor, true, less.data(), count, nested_block, out.codes.data(), out.scales.data());
  return out;
}

}  // namespace easydel::quant
