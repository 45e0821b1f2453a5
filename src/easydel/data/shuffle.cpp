#include "easydel/data/shuffle.h"

namespace easydel::data {

std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter, uint64_t key) {
  auto key_low = uint32_t(key), key_high = uint32_t(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53} * counter[0], b = uint64_t{0xCD9E8D57} * counter[2];
    counter = {uint32_t(b >> 32) ^ counter[1] ^ key_low, uint32_t(b), uint32_t(a >> 32) ^ counter[3] ^ key_high,
               uint32_t(a)};
    key_low += 0x9E3779B9;
    key_high += 0xBB67AE85;
  }
  return counter;
}

uint64_t Stream::next() {
  if (has_second_) {
    has_second_ = false;
    return second_;
  }
  // The number's high word shares a lane with the use: a run never has 2^32 epochs or blocks.
  const auto word = philox({uint32_t(index_), uint32_t(index_ >> 32), uint32_t(number_), uint32_t(use_)}, seed_);
  ++index_;
  second_ = uint64_t{word[3]} << 32 | word[2];
  has_second_ = true;
  return uint64_t{word[1]} << 32 | word[0];
}

uint64_t Stream::below(uint64_t bound) {
  // Numbers in the incomplete last interval of length `bound` are drawn again.
  const uint64_t limit = bound * (UINT64_MAX / bound);
  uint64_t value = next();
  while (value >= limit) value = next();
  return value % bound;
}

}  // namespace easydel::data
