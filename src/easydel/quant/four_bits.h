// bitsandbytes' four-bit numbers, nf4 and fp4: blocks of the flat tensor share a scale, its largest magnitude. Rules
// and order of operations are those of its CPU functions, release 0.50.2, so codes and scales have its bytes.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "easydel/kernels/executor.h"

namespace easydel::quant {

enum class FourBits : uint8_t { nf4, fp4 };

std::string_view name_of(FourBits kind);
// The number of each code.
const std::array<float, 16>& table_of(FourBits kind);

// One code in a byte, [count]; scales [blocks]. The last block may be shorter.
void quantize_four_bits(kernels::Executor& executor, FourBits kind, const float* values, int64_t count, int64_t block,
                        uint8_t* codes, float* scales);
// Two codes in a byte, the first in the upper half; a last odd one alone, with a value of 0 after it.
std::vector<uint8_t> pack_four_bits(FourBits kind, const uint8_t* codes, int64_t count);

// Scales as codes of the dynamic map, in blocks of 256: scale = map[code] * scales[i / 256] + offset.
constexpr int64_t nested_block = 256;
struct NestedScales {
  std::vector<uint8_t> codes;
  std::vector<float> scales;
  float offset = 0;  // the mean of the scales
  float at(int64_t i) const;
};
NestedScales nest_scales(kernels::Executor& executor, const std::vector<float>& scales, float mean);

}  // namespace easydel::quant
