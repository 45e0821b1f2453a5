#include "easydel/kernels/dynamic_codes.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "easydel/base/error.h"
#include "easydel/kernels/dtype.h"
#include "easydel/kernels/loops.h"

namespace easydel::kernels {
namespace {

constexpr double steps_per_unit = 32767.5;

// Of two numbers as near, the lower one.
std::array<uint8_t, DynamicCodes::steps> codes_of_steps(const std::array<float, 256>& numbers) {
  std::array<uint8_t, DynamicCodes::steps> out;
  for (int64_t i = 0; i < DynamicCodes::steps; ++i) {
    const float value = float(i) / float(steps_per_unit) - 1.0f;
    const int64_t next = std::ranges::lower_bound(numbers, value) - numbers.begin();
    const int64_t right = std::min<int64_t>(next, 255), left = std::max<int64_t>(next - 1, 0);
    const bool is_right = std::fabs(numbers[size_t(right)] - value) < std::fabs(value - numbers[size_t(left)]);
    out[size_t(i)] = uint8_t(is_right ? right : left);
  }
  return out;
}

// The ranks of the numbers from `first` to `last`. Steps are rounded, so that ranks change up to a step beside the even
// places: the offset is in the middle of those that give every step its rank.
DynamicCodes::Segment segment_of(const std::array<float, 256>& numbers, const std::vector<int>& ranks, int zero,
                                 int first, int last) {
  const double low = double(numbers[size_t(zero + first)]), high = double(numbers[size_t(zero + last)]);
  const double spacing = (high - low) / (last - first);
  const float slope = float(1 / (spacing * steps_per_unit));
  const double offset = first - double(slope) * steps_per_unit * (low - spacing / 2);
  const auto first_of = [&](int rank) { return double(std::ranges::lower_bound(ranks, rank) - ranks.begin()) + 0.5; };
  double most = INFINITY, least = -INFINITY;
  for (int rank = first + 1; rank <= last; ++rank) {
    const double at = double(slope) * first_of(rank) + offset;
    most = std::min(most, at - rank);
    least = std::max(least, at - double(slope) - rank);
  }
  return {float(first_of(first)), slope, float(offset - (most + least) / 2), float(last)};
}

// What vector loops compute (dynamic_codes_avx512.h).
int code_of_step(const DynamicCodes& map, int64_t step) {
  const float x = float(step) - float(steps_per_unit), size = std::fabs(x);
  int rank = map.nearest_ranks[size_t(std::min(int(size), DynamicCodes::direct - 1))];
  for (const DynamicCodes::Segment& segment : map.segments)
    if (size >= segment.first) rank = int(std::min(std::fma(size, segment.slope, segment.offset), segment.last));
  return x < 0 ? std::max(map.zero - rank, 0) : map.zero + rank + (x >= map.first_of_one);
}

template <class Work>
void for_blocks(Executor& executor, int64_t count, int64_t block, const Work& work) {
  const int64_t blocks = divide_up(count, block);
  constexpr int64_t together = 64;  // so that handing them out costs little
  executor.run(divide_up(blocks, together), [&](int64_t task) {
    for (int64_t b = task * together; b < std::min((task + 1) * together, blocks); ++b)
      work(b, b * block, std::min(block, count - b * block));
  });
}

}  // namespace

DynamicCodes::DynamicCodes(const std::array<float, 256>& map) : numbers(map), codes(codes_of_steps(map)) {
  zero = int(std::ranges::lower_bound(numbers, 0.0f) - numbers.begin());
  std::vector<int> ranks(size_t(steps / 2));  // of m; 1 counts as the number before it
  for (size_t m = 0; m < ranks.size(); ++m) ranks[m] = int(codes[size_t(steps / 2) + m]) - zero;
  const int one = 255 - zero;
  first_of_one = float(std::ranges::lower_bound(ranks, one) - ranks.begin()) + 0.5f;
  const auto rank_above = [&](float number) {
    return int(std::ranges::upper_bound(numbers, number) - numbers.begin()) - zero;
  };
  segments = {segment_of(numbers, ranks, zero, rank_above(0.001f), rank_above(0.01f) - 1),
              segment_of(numbers, ranks, zero, rank_above(0.01f), rank_above(0.1f) - 1),
              segment_of(numbers, ranks, zero, rank_above(0.1f), one - 1)};
  std::copy_n(ranks.begin(), direct, nearest_ranks.begin());
  for (size_t i = 0; i < numbers.size(); ++i) {
    const auto bits = std::bit_cast<uint32_t>(numbers[i]);
    low[i] = uint16_t(bits), high[i] = uint16_t(bits >> 16);
  }
  for (int64_t step = 0; step < steps; ++step)
    check(code_of_step(*this, step) == codes[size_t(step)], "dynamic codes: the numbers are not evenly spaced");
}

void encode_blocks(Executor& executor, const DynamicCodes& map, const float* values, int64_t count, int64_t block,
                   uint8_t* codes, float* scales) {
  const Loops& isa = loops();
  for_blocks(executor, count, block, [&](int64_t b, int64_t first, int64_t n) {
    scales[b] = isa.dynamic.encode(map, values + first, n, codes + first);
  });
}

void decode_blocks(Executor& executor, const DynamicCodes& map, const uint8_t* codes, const float* scales,
                   int64_t count, int64_t block, float* values) {
  const Loops& isa = loops();
  for_blocks(executor, count, block, [&](int64_t b, int64_t first, int64_t n) {
    isa.dynamic.decode(map, codes + first, scales[b], n, values + first);
  });
}

}  // namespace easydel::kernels
