// A constraint as the flags of a command say it (`generate`, `probe constrain`).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "easydel/text/constrain/language.h"

namespace easydel::text::constrain {

struct ConstraintFlags {
  // At most one of these.
  std::optional<std::string> json_schema = {};  // file
  bool json_object = false;
  std::optional<std::string> regex = {};
  std::optional<std::string> grammar = {};  // file
  std::vector<std::string> choices = {};
  // The constraint holds after each of these texts alone, which may be spellings of special tokens; empty: everywhere.
  std::vector<std::string> after = {};
  bool after_required = false;  // the text does not end before the first of them
  bool after_ends = false;      // the text ends with what has followed one of them
};

// nullopt: none is given. UserError: flags that do not fit together, or a file that cannot be read. `where`: the
// command.
std::optional<Language> language_of(const ConstraintFlags& flags, const std::string& where);

}  // namespace easydel::text::constrain
