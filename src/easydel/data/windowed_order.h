// A shuffle of rows that can only be read in blocks: blocks are shuffled, and then the rows of a window of blocks.
#pragma once

#include <cstdint>
#include <initializer_list>

#include "easydel/data/permutation.h"

namespace easydel::data {

inline constexpr int64_t min_blocks_in_window = 64;

struct Windows {
  int64_t block_rows = 0;  // consecutive rows that are read together; 0: a window holds everything
  int64_t min_rows = 0;    // of a window, which also has at least min_blocks_in_window blocks
  bool operator==(const Windows&) const = default;
};

// Which index of [0, size) has a place, in constant time and memory. The order is the one of
// Permutation(size, key of the numbers) if one window holds everything. Else block b has the indices from
// b * block_rows on, a Permutation of the blocks says which of them are one window, and each window has a Permutation
// of its rows.
class WindowedOrder {
 public:
  // `seed`, `use`, `numbers`: as permutation_key().
  WindowedOrder(int64_t size, const Windows& windows, uint64_t seed, Use use, std::initializer_list<uint64_t> numbers);
  int64_t at(int64_t place) const;
  int64_t window_of(int64_t place) const;
  int64_t windows() const { return windows_; }
  static int64_t windows_of(int64_t size, const Windows& windows);

 private:
  int64_t begin_of_slot(int64_t slot) const;  // the first place of the shuffled block
  int64_t slot_of(int64_t place) const;
  int64_t first_slot(int64_t window) const;

  int64_t size_, block_rows_, blocks_, windows_;
  uint64_t key_;
  Permutation order_;         // of the blocks; of all rows if there is one window
  int64_t last_slot_ = 0;     // where the last block is, which may be smaller
  int64_t missing_rows_ = 0;  // that it has fewer than the others
};

}  // namespace easydel::data
