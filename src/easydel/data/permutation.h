// A random order of [0, size) that is computed, not stored: which index has a place, in constant time and memory.
#pragma once

#include <cstdint>
#include <initializer_list>

#include "easydel/data/shuffle.h"

namespace easydel::data {

// A key for each purpose and list of numbers (epoch, source, ...); independent for unequal ones.
uint64_t permutation_key(uint64_t seed, Use use, std::initializer_list<uint64_t> numbers);

// A Feistel network of ten rounds over pairs (left, right) with left * right >= size, whose halves are added modulo
// their ranges (FE1 of doi:10.1007/978-3-642-05445-7_19), and whose round function is Philox. Pairs beyond the size are
// sent through again, which keeps it a bijection; less than one in sqrt(size) is.
class Permutation {
 public:
  Permutation(int64_t size, uint64_t key);
  int64_t at(int64_t place) const;        // place in [0, size)
  int64_t place_of(int64_t index) const;  // the inverse of at()

 private:
  uint64_t once(uint64_t value) const;       // the network, over all pairs
  uint64_t once_back(uint64_t value) const;  // its inverse
  uint64_t key_;
  uint64_t size_, left_, right_;
};

}  // namespace easydel::data
