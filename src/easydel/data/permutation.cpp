#include "easydel/data/permutation.h"

#include <cmath>

#include "easydel/base/error.h"

namespace easydel::data {
namespace {

constexpr uint32_t rounds = 10;

// A half is below 2^32, so it fits a lane of the counter.
uint64_t drawn(uint64_t half, uint32_t round, uint64_t key) {
  const auto word = philox({uint32_t(half), round, 0, 0}, key);
  return uint64_t{word[1]} << 32 | word[0];
}

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

uint64_t Permutation::once(uint64_t value) const {
  uint64_t left = value / right_, right = value % right_;
  for (uint32_t round = 0; round < rounds; round += 2) {
    left = (left + drawn(right, round, key_) % left_) % left_;
    right = (right + drawn(left, round + 1, key_) % right_) % right_;
  }
  return left * right_ + right;
}

uint64_t Permutation::once_back(uint64_t value) const {
  uint64_t left = value / right_, right = value % right_;
  for (uint32_t round = rounds; round > 0; round -= 2) {
    right = (right + right_ - drawn(left, round - 1, key_) % right_) % right_;
    left = (left + left_ - drawn(right, round - 2, key_) % left_) % left_;
  }
  return left * right_ + right;
}

int64_t Permutation::at(int64_t place) const {
  auto value = uint64_t(place);
  do value = once(value);
  while (value >= size_);
  return int64_t(value);
}

int64_t Permutation::place_of(int64_t index) const {
  auto value = uint64_t(index);
  do value = once_back(value);
  while (value >= size_);
  return int64_t(value);
}

}  // namespace easydel::data
