// What lies beside codes: scales, and zeros or offsets, in the narrowest type that holds them all.
#pragma once

#include <cstdint>
#include <span>

namespace easydel::kernels {

enum class CodeNumbers : uint8_t { f32, bf16, f16 };
enum class CodeShift : uint8_t { none, zeros, offsets };  // (code - zero) x scale, or code x scale + offset

constexpr int64_t bytes_of(CodeNumbers type) { return type == CodeNumbers::f32 ? 4 : 2; }

// bf16 or fp16 if it holds all of both, else fp32.
CodeNumbers narrowest_of(std::span<const float> scales, std::span<const float> shifts);

// Number `i` of an array.
float number_at(CodeNumbers type, const uint8_t* numbers, int64_t i);
void put_number(CodeNumbers type, uint8_t* numbers, int64_t i, float x);

}  // namespace easydel::kernels
