// Sets of Unicode characters as ranges, and their UTF-8. Surrogates are not characters and never belong to a set.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace easydel::text::constrain {

constexpr uint32_t last_char = 0x10ffff;

struct CharRange {
  uint32_t first = 0, last = 0;
  auto operator<=>(const CharRange&) const = default;
};

class CharSet {
 public:
  CharSet() = default;
  CharSet(uint32_t first, uint32_t last) { add(first, last); }
  static const CharSet& any();
  static CharSet of(std::string_view ascii);

  void add(uint32_t first, uint32_t last);
  void add(const CharSet& other);
  bool has(uint32_t c) const;
  bool empty() const { return ranges_.empty(); }
  const std::vector<CharRange>& ranges() const { return ranges_; }  // sorted, with gaps between them
  CharSet complement() const;
  CharSet operator&(const CharSet& other) const;
  CharSet operator-(const CharSet& other) const { return *this & other.complement(); }
  auto operator<=>(const CharSet&) const = default;

 private:
  void tidy();
  std::vector<CharRange> ranges_;
};

struct ByteRange {
  uint8_t first = 0, last = 0;
};
// A run of characters whose UTF-8 are exactly the combinations of these byte ranges.
struct Utf8Run {
  std::array<ByteRange, 4> bytes{};
  size_t length = 0;
};
std::vector<Utf8Run> utf8_runs(const CharSet& set);

// An interval of letters and where it leads; letters are bytes or characters.
struct Arrow {
  uint32_t first = 0, last = 0, to = 0;
  auto operator<=>(const Arrow&) const = default;
};

// Cuts intervals that overlap into disjoint ones: each(first, last, targets), in order; targets are sorted and unique.
template <class Each>
void sweep(const std::vector<Arrow>& arrows, Each&& each);

}  // namespace easydel::text::constrain

#include <algorithm>

template <class Each>
void easydel::text::constrain::sweep(const std::vector<Arrow>& arrows, Each&& each) {
  std::vector<std::pair<uint32_t, uint32_t>> begins, ends;  // letter, target
  begins.reserve(arrows.size()), ends.reserve(arrows.size());
  for (const Arrow& arrow : arrows) {
    begins.emplace_back(arrow.first, arrow.to);
    ends.emplace_back(arrow.last + 1, arrow.to);
  }
  std::ranges::sort(begins), std::ranges::sort(ends);
  std::vector<uint32_t> open, targets;
  size_t begin = 0, end = 0;
  uint32_t at = 0;
  while (end < ends.size()) {
    const uint32_t next = begin < begins.size() ? std::min(begins[begin].first, ends[end].first) : ends[end].first;
    if (!open.empty() && next > at) {
      targets = open;
      std::ranges::sort(targets);
      targets.erase(std::unique(targets.begin(), targets.end()), targets.end());
      each(at, next - 1, targets);
    }
    at = next;
    for (; end < ends.size() && ends[end].first == at; ++end) {
      const auto closed = std::ranges::find(open, ends[end].second);
      *closed = open.back();
      open.pop_back();
    }
    for (; begin < begins.size() && begins[begin].first == at; ++begin) open.push_back(begins[begin].second);
  }
}
