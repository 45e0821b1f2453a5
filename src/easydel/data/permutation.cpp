#include "easydel/data/permutation.h"

#include <cmath>

#include "easydel/base/error.h"

namespace easydel::data {
namespace {

constexpr uint32_t rounds = 10;

}  // namespace

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
