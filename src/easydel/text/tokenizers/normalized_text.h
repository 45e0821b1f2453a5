// A text that is edited and tracks, for each byte, the bytes of the original that it came from. The rules for changed
// characters are those of tokenizers' NormalizedString.
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
  // `tracked` false: does not track origins, which is faster. `begin`: offset of `text` in the original.
  NormalizedText(std::string_view text, bool tracked, size_t begin = 0);

  const std::string& bytes() const { return bytes_; }
  bool tracked() const { return tracked_; }
  // The original bytes of [begin, end) of bytes(); only if tracked.
  Span origin(size_t begin, size_t end) const { return {origins_[begin].begin, origins_[end - 1].end}; }
  uint32_t original_begin() const { return original_begin_; }

  NormalizedText slice(size_t begin, size_t end) const;

  void transform(std::span<const Changed> characters);
  // Replaces the whole text by `bytes`; from[i] is the range of old bytes that bytes[i] comes from (if tracked).
  void rewrite(std::string bytes, std::span<const Span> from);
  void replace_range(size_t begin, size_t end,
                     std::string_view content);  // every new byte has the origin of the last old byte
  // Replaces all `ranges`, which must be ordered and disjoint. UserError if the text grows beyond 1 MiB and 256 times
  // its length: replacements of a file can double a text again and again.
  void replace_ranges(std::span<const Span> ranges, std::string_view content);
  void prepend(std::string_view content);  // does not change an empty text
  void keep(size_t begin, size_t end);     // removes everything else
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
  size_t max_bytes_ = 0;  // that replacements may make of the text
};

}  // namespace easydel::text
