#include "easydel/data/windowed_order.h"

#include <algorithm>

#include "easydel/base/error.h"

namespace easydel::data {

int64_t WindowedOrder::windows_of(int64_t size, const Windows& windows) {
  if (windows.block_rows <= 0 || size <= 0) return 1;
  const int64_t blocks = (size + windows.block_rows - 1) / windows.block_rows;
  const int64_t blocks_in_window =
      std::max(min_blocks_in_window, (windows.min_rows + windows.block_rows - 1) / windows.block_rows);
  return std::max<int64_t>(1, blocks / blocks_in_window);
}

WindowedOrder::WindowedOrder(int64_t size, const Windows& windows, uint64_t seed, Use use,
                             std::initializer_list<uint64_t> numbers)
    : size_(size),
      block_rows_(std::max<int64_t>(1, windows.block_rows)),
      blocks_((size + block_rows_ - 1) / block_rows_),
      windows_(windows_of(size, windows)),
      key_(permutation_key(seed, use, numbers)),
      order_(windows_ == 1 ? size : blocks_, key_) {
  if (windows_ == 1) return;
  last_slot_ = order_.place_of(blocks_ - 1);
  missing_rows_ = blocks_ * block_rows_ - size_;
}

int64_t WindowedOrder::begin_of_slot(int64_t slot) const {
  return slot * block_rows_ - (slot > last_slot_ ? missing_rows_ : 0);
}

int64_t WindowedOrder::slot_of(int64_t place) const {
  return place < begin_of_slot(last_slot_ + 1) ? std::min(place / block_rows_, last_slot_)
                                               : (place + missing_rows_) / block_rows_;
}

// Windows differ by at most one block.
int64_t WindowedOrder::first_slot(int64_t window) const {
  const int64_t each = blocks_ / windows_, longer = blocks_ % windows_;
  return window * each + std::min(window, longer);
}

int64_t WindowedOrder::window_of(int64_t place) const {
  if (windows_ == 1) return 0;
  const int64_t each = blocks_ / windows_, longer = blocks_ % windows_, slot = slot_of(place);
  return slot < longer * (each + 1) ? slot / (each + 1) : longer + (slot - longer * (each + 1)) / each;
}

int64_t WindowedOrder::at(int64_t place) const {
  check(place >= 0 && place < size_, "place ", place, " of an order of ", size_);
  if (windows_ == 1) return order_.at(place);
  const int64_t window = window_of(place);
  const int64_t begin = begin_of_slot(first_slot(window)), end = begin_of_slot(first_slot(window + 1));
  const Permutation rows(end - begin, permutation_key(key_, Use::window, {uint64_t(window)}));
  const int64_t drawn = begin + rows.at(place - begin), slot = slot_of(drawn);
  return order_.at(slot) * block_rows_ + (drawn - begin_of_slot(slot));
}

}  // namespace easydel::data
