// The order of packed rows. Documents are packed a window at a time, and how many rows a window has is known once it is
// packed. An epoch uses all rows of one window, and then those of the next one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace easydel::data {

// Documents that are packed together, where mixture.pack_window does not say it.
inline constexpr int64_t default_pack_window = int64_t{1} << 20;
inline constexpr int64_t default_pack_window_of_stream = int64_t{1} << 14;  // whose tokens are all in memory

// A function of the seed and of the windows' sizes. One window has the order of EpochOrder for so many rows.
class PackedOrder {
 public:
  PackedOrder(int64_t windows, bool shuffled, uint64_t seed) : windows_(windows), shuffled_(shuffled), seed_(seed) {}
  // Windows one after the other, without an end.
  static PackedOrder endless(bool shuffled, uint64_t seed) {
    PackedOrder out(INT64_MAX, shuffled, seed);
    out.shuffles_windows_ = false;
    return out;
  }
  int64_t windows() const { return windows_; }
  // Which window comes at a place of an epoch.
  int64_t window(int64_t epoch, int64_t place) const;
  // Which of a window's rows comes at a place among them.
  int64_t row(int64_t epoch, int64_t window, int64_t rows, int64_t place) const;

 private:
  int64_t windows_;
  bool shuffled_, shuffles_windows_ = true;
  uint64_t seed_;
};

// The same if all windows are packed: then every place of an epoch is known.
class PackedEpochs {
 public:
  // `ends`: after each window, how many rows it and those before it have. `size`: of an epoch, at most all of them.
  PackedEpochs(std::vector<int64_t> ends, const PackedOrder& order, int64_t size);
  PackedEpochs(const std::vector<int64_t>& ends, bool shuffled, uint64_t seed)
      : PackedEpochs(ends, PackedOrder(int64_t(ends.size()), shuffled, seed), ends.back()) {}
  int64_t size() const { return size_; }
  // The row, numbered through all windows, at a place of an epoch; for one thread at a time.
  int64_t at(int64_t epoch, int64_t position) const;

 private:
  int64_t begin_of(int64_t window) const { return window == 0 ? 0 : ends_[size_t(window) - 1]; }

  std::vector<int64_t> ends_;
  PackedOrder order_;
  int64_t size_;
  // Of one epoch: how many rows the windows up to each place have.
  mutable int64_t epoch_ = -1;
  mutable std::vector<int64_t> epoch_ends_;
};

}  // namespace easydel::data
