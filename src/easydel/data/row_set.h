// A set of row numbers as bits, and the rows that are not in it by their number among those.
#pragma once

#include <cstdint>
#include <vector>

namespace easydel::data {

// Rows of [0, size). A bit and an eighth for each.
class RowSet {
 public:
  explicit RowSet(int64_t size) : size_(size), words_(size_t((size + 63) / 64), 0) {}
  // `words`: 64 rows each, the first one lowest.
  RowSet(int64_t size, std::vector<uint64_t> words);
  void add(int64_t row) { words_[size_t(row / 64)] |= uint64_t{1} << (row % 64); }
  bool has(int64_t row) const { return words_[size_t(row / 64)] >> (row % 64) & 1; }
  int64_t size() const { return size_; }
  int64_t count() const;  // of the rows in it
  const std::vector<uint64_t>& words() const { return words_; }

 private:
  int64_t size_;
  std::vector<uint64_t> words_;
};

// The rows that are left when a set of them is left out.
class KeptRows {
 public:
  explicit KeptRows(RowSet left_out);
  int64_t size() const { return before_.back(); }
  // The row of this number among those that are left.
  int64_t at(int64_t number) const;
  bool has(int64_t row) const { return !left_out_.has(row); }

 private:
  static constexpr size_t words_in_group = 8;
  uint64_t kept_in(size_t word) const;

  RowSet left_out_;
  std::vector<int64_t> before_;  // kept rows before each group of words, and of all
};

}  // namespace easydel::data
