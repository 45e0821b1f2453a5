// A text that is being changed and still knows which bytes of the original each of its bytes came from.
// The rules of what a changed character inherits are those of tokenizers' NormalizedString.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "easydel/text/unicode.h"

namespace easydel::text {

struct Span {
  uint32_t begin = 0, end = 0;
};

class NormalizedText {
 public:
  // `tracked` false: origins are not kept, and everything is faster. `begin`: where `text` stands in the original.
  NormalizedText(std::string_view text, bool tracked, size_t begin = 0);

  const std::string& bytes() const { return bytes_; }
  bool tracked() const { return tracked_; }
  // The original bytes of [begin, end) of bytes(); only where tracked.
  Span origin(size_t begin, size_t end) const { return {origins_[begin].begin, origins_[end - 1].end}; }
  uint32_t original_begin() const { return original_begin_; }

  NormalizedText slice(size_t begin, size_t end) const;

  void transform(std::span<const Changed> characters);
  // All of it becomes `bytes`; from[i] is the range of the old bytes that bytes[i] comes from (where tracked).
  void rewrite(std::string bytes, std::span<const Span> from);
  void replace_range(size_t begin, size_t end, std::string_view content);  // every new byte inherits from the last old
  // All `ranges` (in order, apart) at once.
  void replace_ranges(std::span<const Span> ranges, std::string_view content);
  void prepend(std::string_view content);  // nothing happens to an empty text
  void keep(size_t begin, size_t end);     // cuts the ends off
  template <class Predicate>
  void remove_if(Predicate&& remove) {
    size_t to = 0;
    for (size_t at = 0; at < bytes_.size();) {
      size_t from = at;
      if (remove(next_character(bytes_, at))) continue;
      for (; from < at; ++from, ++to) {
        bytes_[to] = bytes_[from];
        if (tracked_) origins_[to] = origins_[from];
      }
    }
    bytes_.resize(to);
    if (tracked_) origins_.resize(to);
  }

 private:
  std::string bytes_;
  std::vector<Span> origins_;
  uint32_t original_begin_ = 0;
  bool tracked_ = false;
};

}  // namespace easydel::text
