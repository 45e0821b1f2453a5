// The 8-bit "dynamic" numbers of bitsandbytes: of optimizer states, and of the scales of double quantization. Rules and
// order of operations are those of its CPU functions, release 0.50.2, so codes and scales have its bytes.
#pragma once

#include <array>
#include <cstdint>

#include "easydel/kernels/dynamic_codes.h"

namespace easydel::quant {

// 256 ascending numbers up to 1: with a sign from about -0.993 on, without one from 0 on.
// Source: bitsandbytes.functional.create_dynamic_map.
const std::array<float, 256>& dynamic_map(bool has_sign);
const kernels::DynamicCodes& dynamic_codes(bool has_sign);  // of them

// Values in blocks that share a scale, which is the block's largest magnitude; the last block may be shorter. codes
// [count], scales [blocks]. A value that is not finite gives a code of no meaning.
void quantize_dynamic(kernels::Executor& executor, bool has_sign, const float* values, int64_t count, int64_t block,
                      uint8_t* codes, float* scales);
void dequantize_dynamic(kernels::Executor& executor, bool has_sign, const uint8_t* codes, const float* scales,
                        int64_t count, int64_t block, float* values);

}  // namespace easydel::quant
