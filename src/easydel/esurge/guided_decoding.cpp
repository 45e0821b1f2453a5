#include "easydel/esurge/guided_decoding.h"

#include "easydel/base/document.h"

namespace easydel::esurge {

void GuidedDecoding::settle(config::Keys& keys) {
  const bool object = json_object.value_or(false);
  const int kinds =
      int(!json.is_null()) + int(regex.has_value()) + int(grammar.has_value()) + int(choice.has_value()) + int(object);
  const char* const kinds_text = "give one of json, regex, choice, grammar and json_object";
  if (kinds > 1)
    keys.refuse("json", "Only one guided decoding mode can be used, but multiple were specified", kinds_text);
  if (kinds == 0) keys.refuse("json", "is missing", kinds_text);
  if (json.is_list()) keys.refuse("json", "a list is not a JSON schema", "give a map, or its text");
}

text::constrain::Language GuidedDecoding::language() const {
  using Kind = text::constrain::Language::Kind;
  if (regex) return {Kind::regex, *regex};
  if (grammar) return {Kind::grammar, *grammar};
  if (choice) return {Kind::choice, "", *choice};
  if (json.is_null()) return {Kind::json_object};
  return {Kind::json_schema, json.is_text() ? json.scalar : to_json(json)};
}

}  // namespace easydel::esurge
