#include "easydel/data/row_set.h"

#include <algorithm>
#include <bit>

#include "easydel/base/error.h"

namespace easydel::data {

RowSet::RowSet(int64_t size, std::vector<uint64_t> words) : size_(size), words_(std::move(words)) {
  check(int64_t(words_.size()) == (size + 63) / 64, "a set of ", size, " rows with ", words_.size(), " words");
}

int64_t RowSet::count() const {
  int64_t out = 0;
  for (const uint64_t word : words_) out += std::popcount(word);
  return out;
}

KeptRows::KeptRows(RowSet left_out) : left_out_(std::move(left_out)), before_{0} {
  const size_t words = left_out_.words().size();
  for (size_t word = 0; word < words; ++word) {
    if (word % words_in_group == 0) before_.push_back(before_.back());
    before_.back() += std::popcount(kept_in(word));
  }
}

uint64_t KeptRows::kept_in(size_t word) const {
  const int64_t rows = left_out_.size() - int64_t(word) * 64;
  const uint64_t all = rows >= 64 ? ~uint64_t{0} : (uint64_t{1} << rows) - 1;
  return ~left_out_.words()[word] & all;
}

int64_t KeptRows::at(int64_t number) const {
  check(number >= 0 && number < size(), "row ", number, " of ", size(), " that are left");
  const auto group = size_t(std::ranges::upper_bound(before_, number) - before_.begin()) - 1;
  int64_t left = number - before_[group];
  for (size_t word = group * words_in_group;; ++word) {
    uint64_t kept = kept_in(word);
    const int64_t count = std::popcount(kept);
    if (left >= count) {
      left -= count;
      continue;
    }
    for (; left > 0; --left) kept &= kept - 1;
    return int64_t(word) * 64 + std::countr_zero(kept);
  }
}

}  // namespace easydel::data
