// What constrained output may be: a language, or free text with languages after markers. constraint.h compiles it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace easydel::text::constrain {

struct Language {
  enum class Kind : uint8_t { json_schema, json_object, regex, choice, grammar };
  Kind kind = Kind::json_object;
  std::string source = {};                // the schema as JSON, the pattern, or the grammar (GBNF)
  std::vector<std::string> choices = {};  // of choice
};

// Free text in which the language of a trigger has to follow its marker at once.
struct Trigger {
  std::string marker;  // text, or the spelling of a special token
  Language language;
  bool ends_text = false;  // after the language the text ends; otherwise it is free again
};

}  // namespace easydel::text::constrain
