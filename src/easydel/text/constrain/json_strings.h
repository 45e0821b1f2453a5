// JSON strings as expressions over bytes, from automata over the characters that they stand for.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "easydel/text/constrain/char_automaton.h"
#include "easydel/text/constrain/grammar.h"

namespace easydel::text::constrain {

// How values are written, as far as it is not JSON's own way.
struct ValueForm {
  std::string_view null_word = "null", true_word = "true", false_word = "false";
  bool escapes_slashes = true;  // "\/" may stand for "/"
  CharSet escaped = {};         // ASCII characters of strings that are always written as \u....
  std::string quote = {};       // not empty: a string is its own text between two of these, without it
};

// The texts in which none of `parts` is; all valid UTF-8.
CharDfa texts_without(const std::vector<std::string>& parts, Work& work);
// A text for which a special token that is spelled so may stand.
ExprId marker_expr(const std::string& text, Grammar& grammar);
// The texts as they are.
ExprId plain_texts(const CharDfa& texts, Grammar& grammar);

// How strings are written. Strings of any text may use every escape of JSON (\u in pairs for characters beyond 16 bits,
// no halves of pairs). In others printable ASCII stands for itself, '"', '\' and control characters are escaped, and
// every other character stands for itself or is escaped.
class JsonStrings {
 public:
  explicit JsonStrings(Grammar& grammar, ValueForm form = {}) : grammar_(grammar), form_(std::move(form)) {}

  const ValueForm& form() const { return form_; }

  ExprId any();                                               // with quotes
  ExprId of_length(int64_t min, std::optional<int64_t> max);  // in characters
  ExprId of(const CharDfa& texts);
  ExprId literal(std::string_view text);  // valid UTF-8

 private:
  CharSet plain_chars() const;
  ExprId quoted(const CharDfa& texts);         // between form_.quote
  ExprId plain();                              // a character that stands for itself
  ExprId escape();                             // any escape of one character
  ExprId code(uint32_t first, uint32_t last);  // \uXXXX of a range below 0x10000
  ExprId character(const CharSet& set);
  ExprId hex(uint32_t low, uint32_t high);

  Grammar& grammar_;
  ValueForm form_;
  std::optional<RuleId> any_, escape_;
  std::vector<std::pair<CharSet, ExprId>> codes_;  // calls of rules for escaped characters, by set
};

// The texts of a format; nullopt: not a format that is known.
std::optional<CharDfa> format_texts(std::string_view format, Work& work);
std::string known_formats();  // for messages

}  // namespace easydel::text::constrain
