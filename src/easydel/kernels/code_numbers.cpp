#include "easydel/kernels/code_numbers.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "easydel/kernels/dtype.h"
#include "easydel/kernels/half.h"

namespace easydel::kernels {
namespace {

bool is_bf16(float x) { return (std::bit_cast<uint32_t>(x) & 0xffffu) == 0; }

bool is_half(float x) {
  return !std::isnan(x) && std::bit_cast<uint32_t>(rounded_to_half(x)) == std::bit_cast<uint32_t>(x);
}

}  // namespace

CodeNumbers narrowest_of(std::span<const float> scales, std::span<const float> shifts) {
  const auto all = [&](bool (*fits)(float)) {
    return std::ranges::all_of(scales, fits) && std::ranges::all_of(shifts, fits);
  };
  return all(is_bf16) ? CodeNumbers::bf16 : all(is_half) ? CodeNumbers::f16 : CodeNumbers::f32;
}

float number_at(CodeNumbers type, const uint8_t* numbers, int64_t i) {
  switch (type) {
    case CodeNumbers::f32:
      return reinterpret_cast<const float*>(numbers)[i];
    case CodeNumbers::bf16:
      return widen(reinterpret_cast<const bf16*>(numbers)[i]);
    case CodeNumbers::f16:
      return half_value(reinterpret_cast<const uint16_t*>(numbers)[i]);
  }
  __builtin_unreachable();
}

void put_number(CodeNumbers type, uint8_t* numbers, int64_t i, float x) {
  switch (type) {
    case CodeNumbers::f32:
      reinterpret_cast<float*>(numbers)[i] = x;
      return;
    case CodeNumbers::bf16:
      reinterpret_cast<bf16*>(numbers)[i] = narrow(x);
      return;
    case CodeNumbers::f16:
      reinterpret_cast<uint16_t*>(numbers)[i] = half_bits(x);
  }
}

}  // namespace easydel::kernels
