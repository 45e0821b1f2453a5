// Regular expressions of tokenizer files. They are written for Oniguruma (Ruby syntax), which runs them unless the
// faster split_pattern.h can.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "easydel/text/tokenizers/normalized_text.h"

namespace easydel::text {

// A part of a text: a match of a pattern, or the text between two matches.
struct Segment {
  uint32_t begin, end;
  bool match;
};

class Regex {
 public:
  enum class Engine : uint8_t { fastest, oniguruma };
  // UserError: it cannot be compiled.
  explicit Regex(const std::string& pattern, Engine engine = Engine::fastest);
  ~Regex();
  Regex(Regex&&) noexcept;
  Regex& operator=(Regex&&) noexcept;

  // Splits `text` (valid UTF-8) into matches and gaps, in order.
  void find_all(std::string_view text, std::vector<Segment>& out) const;
  // Appends the end of each of those parts. `mapped`: `text` holds arbitrary bytes that stand for the characters that
  // byte-level files map them to; only if is_fast().
  void cut(std::string_view text, bool mapped, std::vector<uint32_t>& ends) const;
  bool is_fast() const;
  bool matches_at_start(std::string_view text) const;  // by Oniguruma

 private:
  bool search(std::string_view text, size_t at, bool mapped, size_t& from, size_t& to) const;
  template <class Add>
  void each_part(std::string_view text, bool mapped, Add&& add) const;

  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// {"String": "..."} or {"Regex": "..."} of a tokenizer file.
struct Pattern {
  std::string literal;
  std::shared_ptr<const Regex> regex;  // null: match the literal

  void find_all(std::string_view text, std::vector<Segment>& out) const;
};

}  // namespace easydel::text
