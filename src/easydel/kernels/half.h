// fp16 as a rounding of fp32.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace easydel::kernels {

// To the nearest number of fp16, ties to even, as fp32; infinite above its range. Below 2^-14 its numbers are multiples
// of 2^-24.
inline float rounded_to_half(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value), size = bits & 0x7fffffffu;
  const float magnitude = std::bit_cast<float>(size);
  const float small = (magnitude + 0.5f) - 0.5f;
  const float large = std::bit_cast<float>((size + 0xfffu + (size >> 13 & 1u)) & ~0x1fffu);
  const float limited = large > 65504.0f ? INFINITY : large;
  const float out = magnitude < 0x1p-14f ? small : size > 0x7f800000u ? magnitude : limited;
  return std::bit_cast<float>(std::bit_cast<uint32_t>(out) | (bits & 0x80000000u));
}

}  // namespace easydel::kernels
