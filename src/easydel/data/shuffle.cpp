#include "easydel/data/shuffle.h"

#include <cmath>

#include "easydel/base/error.h"

namespace easydel::data {
namespace {

constexpr uint32_t rounds = 10;  // of Permutation

}  // namespace

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

uint64_t permutation_key(uint64_t seed, Use use, std::initializer_list<uint64_t> numbers) {
  uint64_t key = seed;
  for (const uint64_t number : numbers) {
    const auto word = philox({uint32_t(number), uint32_t(number >> 32), 0, uint32_t(use)}, key);
    key = uint64_t{word[1]} << 32 | word[0];
  }
  return key;
}

Permutation::Permutation(int64_t size, uint64_t key) : key_(key), size_(uint64_t(size)) {
  check(size > 0, "an order of ", size, " places");
  left_ = uint64_t(std::ceil(std::sqrt(double(size))));
  right_ = (size_ + left_ - 1) / left_;
}

int64_t Permutation::at(int64_t place) const {
  auto value = uint64_t(place);
  do {
    uint64_t left = value / right_, right = value % right_;
    for (uint32_t round = 0; round < rounds; round += 2) {
      // A half is below 2^32, so it fits a lane of the counter.
      auto word = philox({uint32_t(right), round, 0, 0}, key_);
      left = (left + (uint64_t{word[1]} << 32 | word[0]) % left_) % left_;
      word = philox({uint32_t(left), round + 1, 0, 0}, key_);
      right = (right + (uint64_t{word[1]} << 32 | word[0]) % right_) % right_;
    }
    value = left * right_ + right;
  } while (value >= size_);
  return int64_t(value);
}

}  // namespace easydel::data
