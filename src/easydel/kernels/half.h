// fp16 as a rounding of fp32, and as 16 bits.
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

// The number that the bits mean; infinities and NaN stay what they are.
inline float half_value(uint16_t bits) {
  const uint32_t sign = uint32_t(bits & 0x8000u) << 16, size = bits & 0x7fffu;
  if (size >= 0x7c00u) return std::bit_cast<float>(sign | 0x7f800000u | (size & 0x3ffu) << 13);
  const float value = size < 0x400u ? float(size) * 0x1p-24f : std::bit_cast<float>((size << 13) + (112u << 23));
  return std::bit_cast<float>(std::bit_cast<uint32_t>(value) | sign);
}

// The bits of a number that fp16 holds exactly, other than NaN.
inline uint16_t half_bits(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value), sign = bits >> 16 & 0x8000u;
  const float size = std::fabs(value);
  if (size < 0x1p-14f) return uint16_t(sign | uint32_t(size * 0x1p24f));
  if (std::isinf(size)) return uint16_t(sign | 0x7c00u);
  return uint16_t(sign | ((bits & 0x7fffffffu) - (112u << 23)) >> 13);
}

}  // namespace easydel::kernels
