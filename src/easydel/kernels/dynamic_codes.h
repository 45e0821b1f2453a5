// Codes of eight bits that are numbers of a map which is dense around zero, with a scale for each block of values:
// those of optimizer states. Which numbers the map has is not decided here (quant/dynamic_map.h).
#pragma once

#include <array>
#include <cstdint>

#include "easydel/kernels/executor.h"

namespace easydel::kernels {

// The code of a number in [-1, 1] is that of the nearest of 65,536 equal steps. Vector loops compute it: step 32768 + m
// has the code zero + rank(m) and step 32767 - m has zero - rank(m), at least 0. rank(m) is nearest_ranks[m] below the
// first of the segments, and rises evenly within each.
struct DynamicCodes {
  // numbers: ascending, with 0 and 1, as many below zero as above without 1, or none below; evenly spaced between the
  // powers of ten from 0.001 to 1. A Bug if ranks cannot be computed from them.
  explicit DynamicCodes(const std::array<float, 256>& numbers);

  static constexpr int64_t steps = 65536;
  static constexpr int segment_count = 3, direct = 32;
  struct Segment {
    float first;                // the least m + 1/2
    float slope, offset, last;  // rank: slope (m + 1/2) + offset, at most `last`, rounded down
  };

  std::array<float, 256> numbers;
  std::array<uint8_t, steps> codes;  // of each step
  int zero;                          // the code of 0
  float first_of_one;                // m + 1/2 from which on a positive number is 1, one rank further
  std::array<int32_t, direct> nearest_ranks;
  std::array<Segment, segment_count> segments;
  // Halves of the numbers' bits.
  alignas(64) std::array<uint16_t, 256> low;
  alignas(64) std::array<uint16_t, 256> high;
};

// Values [count] in blocks of `block`, the last of which may be shorter: codes [count], and scales [blocks], each the
// block's largest magnitude. A value that is not finite gives a code of no meaning.
void encode_blocks(Executor& executor, const DynamicCodes& map, const float* values, int64_t count, int64_t block,
                   uint8_t* codes, float* scales);
// numbers[code] x scale.
void decode_blocks(Executor& executor, const DynamicCodes& map, const uint8_t* codes, const float* scales,
                   int64_t count, int64_t block, float* values);

}  // namespace easydel::kernels
