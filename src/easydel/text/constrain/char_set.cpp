#include "easydel/text/constrain/char_set.h"

namespace easydel::text::constrain {
namespace {

constexpr uint32_t first_surrogate = 0xd800, kLastSurrogate = 0xdfff;

}  // namespace

const CharSet& CharSet::any() {
  static const CharSet* const all = new CharSet(0, last_char);
  return *all;
}

CharSet CharSet::of(std::string_view ascii) {
  CharSet out;
  for (const char c : ascii) out.ranges_.push_back({uint8_t(c), uint8_t(c)});
  out.tidy();
  return out;
}

void CharSet::add(uint32_t first, uint32_t last) {
  last = std::min(last, last_char);
  if (first < first_surrogate && last >= first_surrogate) {
    ranges_.push_back({first, first_surrogate - 1});
    first = kLastSurrogate + 1;
  }
  if (first >= first_surrogate && first <= kLastSurrogate) first = kLastSurrogate + 1;
  if (last >= first_surrogate && last <= kLastSurrogate) last = first_surrogate - 1;
  if (first <= last) ranges_.push_back({first, last});
  tidy();
}

void CharSet::add(const CharSet& other) {
  ranges_.insert(ranges_.end(), other.ranges_.begin(), other.ranges_.end());
  tidy();
}

void CharSet::tidy() {
  std::ranges::sort(ranges_);
  size_t kept = 0;
  for (const CharRange& range : ranges_) {
    if (kept && range.first <= ranges_[kept - 1].last + 1)
      ranges_[kept - 1].last = std::max(ranges_[kept - 1].last, range.last);
    else
      ranges_[kept++] = range;
  }
  ranges_.resize(kept);
}

bool CharSet::has(uint32_t c) const {
  const auto after = std::ranges::upper_bound(ranges_, c, {}, [](const CharRange& range) { return range.first; });
  return after != ranges_.begin() && c <= std::prev(after)->last;
}

CharSet CharSet::complement() const {
  CharSet out;
  uint32_t next = 0;
  for (const CharRange& range : ranges_) {
    if (range.first > next) out.add(next, range.first - 1);
    next = range.last + 1;
  }
  if (next <= last_char) out.add(next, last_char);
  return out;
}

CharSet CharSet::operator&(const CharSet& other) const {
  CharSet out;
  for (size_t i = 0, j = 0; i < ranges_.size() && j < other.ranges_.size();) {
    const CharRange a = ranges_[i], b = other.ranges_[j];
    const uint32_t first = std::max(a.first, b.first), last = std::min(a.last, b.last);
    if (first <= last) out.ranges_.push_back({first, last});
    a.last < b.last ? ++i : ++j;
  }
  return out;
}

std::vector<Utf8Run> utf8_runs(const CharSet& set) {
  std::vector<Utf8Run> out;
  std::vector<CharRange> todo(set.ranges().rbegin(), set.ranges().rend());
  while (!todo.empty()) {
    const CharRange range = todo.back();
    todo.pop_back();
    // Both ends must have the same number of bytes, and below the first byte that differs the range must be full.
    const auto cut = [&](uint32_t last_of_first) {
      todo.push_back({last_of_first + 1, range.last});
      todo.push_back({range.first, last_of_first});
      return true;
    };
    bool was_cut = false;
    for (const uint32_t limit : {0x7fu, 0x7ffu, 0xffffu})
      if (!was_cut && range.first <= limit && range.last > limit) was_cut = cut(limit);
    if (was_cut) continue;
    const size_t length = range.first < 0x80 ? 1 : range.first < 0x800 ? 2 : range.first < 0x10000 ? 3 : 4;
    for (size_t below = 1; below < length && !was_cut; ++below) {
      const uint32_t mask = (1u << (6 * below)) - 1;
      if ((range.first & ~mask) == (range.last & ~mask)) continue;
      if (range.first & mask)
        was_cut = cut(range.first | mask);
      else if ((range.last & mask) != mask)
        was_cut = cut((range.last & ~mask) - 1);
    }
    if (was_cut) continue;
    Utf8Run run;
    run.length = length;
    static constexpr std::array<uint8_t, 5> lead = {0, 0x00, 0xc0, 0xe0, 0xf0};
    for (size_t i = 0; i < length; ++i) {
      const auto shift = uint32_t(6 * (length - 1 - i));
      const uint32_t high = i == 0 ? lead[length] : 0x80, bits = i == 0 ? 0xff : 0x3f;
      run.bytes[i] = {uint8_t(high | (range.first >> shift & bits)), uint8_t(high | (range.last >> shift & bits))};
    }
    out.push_back(run);
  }
  return out;
}

}  // namespace easydel::text::constrain
