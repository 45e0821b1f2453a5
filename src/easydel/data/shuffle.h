// Random numbers and orders that depend only on a seed and a number: equal on every machine, for every number of ranks
// and workers.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>

namespace easydel::data {

// The purpose of an order, so that two uses of one seed are independent.
enum class Use : uint32_t { epoch = 1, block = 2, source = 3, documents = 4 };

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

// A key for each purpose and list of numbers (epoch, source, ...); independent for unequal ones.
uint64_t permutation_key(uint64_t seed, Use use, std::initializer_list<uint64_t> numbers);

// A random order of [0, size) that is computed, not stored: which index has a place, in constant time and memory. A
// Feistel network of ten rounds over pairs (left, right) with left * right >= size, whose halves are added modulo
// their ranges (FE1 of doi:10.1007/978-3-642-05445-7_19), and whose round function is Philox. Pairs beyond the size are
// sent through again, which keeps it a bijection; less than one in sqrt(size) is.
class Permutation {
 public:
  Permutation(int64_t size, uint64_t key);
  int64_t at(int64_t place) const;  // place in [0, size)

 private:
  uint64_t key_;
  uint64_t size_, left_, right_;
};

}  // namespace easydel::data
