#include "easydel/data/packed_order.h"

#include <algorithm>

#include "easydel/base/error.h"
#include "easydel/data/permutation.h"

namespace easydel::data {

int64_t PackedOrder::window(int64_t epoch, int64_t place) const {
  if (!shuffled_ || !shuffles_windows_ || windows_ == 1) return place;
  return Permutation(windows_, permutation_key(seed_, Use::pack_window, {uint64_t(epoch)})).at(place);
}

int64_t PackedOrder::row(int64_t epoch, int64_t window, int64_t rows, int64_t place) const {
  if (!shuffled_) return place;
  const uint64_t key = permutation_key(seed_, Use::epoch, {uint64_t(epoch)});
  return Permutation(rows, windows_ == 1 ? key : permutation_key(key, Use::window, {uint64_t(window)})).at(place);
}

PackedEpochs::PackedEpochs(std::vector<int64_t> ends, const PackedOrder& order, int64_t size)
    : ends_(std::move(ends)), order_(order), size_(size) {
  check(!ends_.empty() && size_ <= ends_.back(), "an epoch of ", size_, " packed rows");
}

int64_t PackedEpochs::at(int64_t epoch, int64_t position) const {
  check(position >= 0 && position < size(), "place ", position, " of an epoch of ", size());
  if (epoch != epoch_) {
    epoch_ends_.clear();
    int64_t rows = 0;
    for (int64_t place = 0; place < int64_t(ends_.size()); ++place) {
      const int64_t window = order_.window(epoch, place);
      epoch_ends_.push_back(rows += ends_[size_t(window)] - begin_of(window));
    }
    epoch_ = epoch;
  }
  const int64_t place = std::ranges::upper_bound(epoch_ends_, position) - epoch_ends_.begin();
  const int64_t window = order_.window(epoch, place);
  const int64_t before = place == 0 ? 0 : epoch_ends_[size_t(place) - 1];
  const int64_t rows = ends_[size_t(window)] - begin_of(window);
  return begin_of(window) + order_.row(epoch, window, rows, position - before);
}

}  // namespace easydel::data
