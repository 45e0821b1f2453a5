// Random numbers that depend only on a seed and a number: equal on every machine, for every number of ranks and
// workers.
#pragma once

#include <array>
#include <cstdint>

namespace easydel::data {

// The purpose of an order, so that two uses of one seed are independent.
enum class Use : uint32_t { epoch = 1, block = 2, source = 3, documents = 4, window = 5, pack_window = 6 };

// Philox 4x32-10 (doi:10.1145/2063384.2063405).
std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter, uint64_t key);

// Philox as a stream of 64-bit numbers: key = seed, counter = (i, use, number).
class Stream {
 public:
  Stream(uint64_t seed, Use use, uint64_t number) : seed_(seed), use_(use), number_(number) {}
  uint64_t next();
  uint64_t below(uint64_t bound);  // uniform in [0, bound) without bias; bound > 0

 private:
  uint64_t seed_;
  Use use_;
  uint64_t number_, index_ = 0;
  uint64_t second_ = 0;
  bool has_second_ = false;
};

}  // namespace easydel::data
