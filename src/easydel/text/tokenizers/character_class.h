// The set of characters that a regular expression for one character matches. Oniguruma evaluates each block of 256
// characters once, on first use.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "easydel/text/unicode.h"

namespace easydel::text {

class CharacterClass {
 public:
  // `pattern` must always match exactly one character. UserError: it cannot be compiled.
  explicit CharacterClass(std::string pattern);
  ~CharacterClass();
  CharacterClass(const CharacterClass&) = delete;
  CharacterClass& operator=(const CharacterClass&) = delete;

  const std::string& pattern() const { return pattern_; }
  bool has_ascii(uint8_t byte) const { return ascii_[byte]; }  // byte < 0x80
  bool has_mapped(uint8_t byte) const {
    return mapped_[byte];
  }  // for the character that byte-level files use for this byte
  bool has(char32_t c) const {
    if (c < 0x80) return ascii_[c];
    const Block* block = blocks_[c >> 8].load(std::memory_order_acquire);
    if (!block) block = ask(c >> 8);
    return (*block)[c >> 6 & 3] >> (c & 63) & 1;
  }
  // If the character at `at` is in the set, moves `at` past it and returns true.
  template <bool mapped>
  bool take(std::string_view text, size_t& at) const {
    auto lead = uint8_t(text[at]);
    if (mapped || lead < 0x80) {
      if (!(mapped ? mapped_[lead] : ascii_[lead])) return false;
      ++at;
      return true;
    }
    size_t behind = at;
    if (!has(next_character(text, behind))) return false;
    at = behind;
    return true;
  }

 private:
  using Block = std::array<uint64_t, 4>;
  const Block* ask(size_t block) const;

  struct Compiled;
  std::string pattern_;
  std::unique_ptr<Compiled> compiled_;
  std::array<bool, 128> ascii_{};
  std::array<bool, 256> mapped_{};
  mutable std::array<std::atomic<const Block*>, 0x1100> blocks_{};
};

}  // namespace easydel::text
