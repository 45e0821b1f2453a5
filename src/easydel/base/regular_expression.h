// Regular expressions of users' files and of names (ECMAScript, as std::regex reads them). One file is compiled against
// <regex>, which takes seconds in each file that uses it. Text is tokenized with another one, text/tokenizers/regex.h.
#pragma once

#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace easydel {

struct InvalidRegularExpression : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Immutable; copies share what is compiled.
class RegularExpression {
 public:
  explicit RegularExpression(const std::string& expression);  // InvalidRegularExpression

  bool matches(std::string_view text) const;   // the whole text
  bool found_in(std::string_view text) const;  // any part of it
  // What each group took; [0] is all of the match. Nullopt: no match, or a group that took no part in it.
  using Groups = std::vector<std::optional<std::string>>;
  std::optional<Groups> match(std::string_view text) const;        // the whole text
  std::optional<Groups> first_match(std::string_view text) const;  // any part of it
  // The text with every match replaced by `with`, where $1 is the first group.
  std::string replace(std::string_view text, const std::string& with) const;

 private:
  struct Compiled;
  std::shared_ptr<const Compiled> compiled_;
};

}  // namespace easydel
