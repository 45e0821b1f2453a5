// Regular expressions of tokenizer files. They are written for Oniguruma (Ruby syntax), so that is what runs them;
// the patterns of the large families have scanners of their own (scanners.h).
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "easydel/text/normalized_text.h"

namespace easydel::text {

// A part of a text: what a pattern matched, or what lies between two matches.
struct Part {
  uint32_t begin, end;
  bool match;
};

class Regex {
 public:
  explicit Regex(const std::string& pattern);  // UserError where it cannot be compiled
  ~Regex();
  Regex(Regex&&) noexcept;
  Regex& operator=(Regex&&) noexcept;

  // The whole of `text` (valid UTF-8) cut into matches and gaps, in order.
  void find_all(std::string_view text, std::vector<Part>& out) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// {"String": "..."} or {"Regex": "..."} of a tokenizer file.
struct Pattern {
  std::string literal;
  std::shared_ptr<const Regex> regex;  // null: the literal

  void find_all(std::string_view text, std::vector<Part>& out) const;
};

}  // namespace easydel::text
