// What constrained output may be: a language, or free text with languages after markers. constraint.h compiles it.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "easydel/text/constrain/argument_notation.h"

namespace easydel::text::constrain {

struct Language {
  enum class Kind : uint8_t {
    json_schema,
    arguments,  // of a call: the members of an object that a schema accepts, written by `notation`
    json_object,
    regex,
    choice,
    grammar,
    // Made of others:
    marker,     // one text; a special token that is spelled so may stand for it
    sequence,   // all parts, one after the other
    any_of,     // one of the parts
    repeat,     // the first part `min` to `max` times; the second one, if there is one, between them
    free_text,  // free text in which part i has to follow the marker choices[i]
  };
  Kind kind = Kind::json_object;
  std::string source = {};                // the schema as JSON, the pattern, the grammar (GBNF) or the marker
  std::vector<std::string> choices = {};  // of choice and free_text
  std::vector<Language> parts = {};
  int64_t min = 0, max = -1;  // of repeat; max -1: no bound. Of free_text: it may not end before `min` markers, 0 or 1
  ArgumentNotation notation = {};
  std::string escaped = {};  // of json_schema and json_object: ASCII that strings always write as \u....
  bool ends_text = false;    // of free_text: it ends after the first part that followed a marker

  static Language marker(std::string text) { return {.kind = Kind::marker, .source = std::move(text)}; }
  static Language sequence(std::vector<Language> parts) { return {.kind = Kind::sequence, .parts = std::move(parts)}; }
  static Language any_of(std::vector<Language> parts) { return {.kind = Kind::any_of, .parts = std::move(parts)}; }
  // Free text that ends where `after` has followed `text`.
  static Language free_until(std::string text, Language after) {
    return {.kind = Kind::free_text,
            .choices = {std::move(text)},
            .parts = {std::move(after)},
            .min = 1,
            .ends_text = true};
  }
  // Every part with its size, so that different languages have different keys.
  std::string key() const;
};

// Free text in which the language of a trigger has to follow its marker at once.
struct Trigger {
  std::string marker;  // text, or the spelling of a special token
  Language language;
  bool ends_text = false;  // after the language the text ends; otherwise it is free again
};

}  // namespace easydel::text::constrain
