// JSON strings as expressions over bytes, from automata over the characters that they stand for.
#pragma once

#include <optional>
#include <string_view>

#include "easydel/text/constrain/char_automaton.h"
#include "easydel/text/constrain/grammar.h"

namespace easydel::text::constrain {

// How strings are written. Strings of any text may use every escape of JSON (\u in pairs for characters beyond 16 bits,
// no halves of pairs). In others printable ASCII stands for itself, '"', '\' and control characters are escaped, and
// every other character stands for itself or is escaped.
class JsonStrings {
 public:
  explicit JsonStrings(Grammar& grammar) : grammar_(grammar) {}

  ExprId any();                                               // with quotes
  ExprId of_length(int64_t min, std::optional<int64_t> max);  // in characters
  ExprId of(const CharDfa& texts);
  ExprId literal(std::string_view text);  // valid UTF-8

 private:
  ExprId plain();                              // a character that stands for itself
  ExprId escape();                             // any escape of one character
  ExprId code(uint32_t first, uint32_t last);  // \uXXXX of a range below 0x10000
  ExprId character(const CharSet& set);
  ExprId hex(uint32_t low, uint32_t high);

  Grammar& grammar_;
  std::optional<RuleId> any_, escape_;
  std::vector<std::pair<CharSet, ExprId>> codes_;  // calls of rules for escaped characters, by set
};

// The texts of a format; nullopt: not a format that is known.
std::optional<CharDfa> format_texts(std::string_view format, Work& work);
std::string known_formats();  // for messages

}  // namespace easydel::text::constrain
