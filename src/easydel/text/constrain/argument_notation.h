// How formats of calls write arguments that are not one JSON object.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace easydel::text {

// The types that a parameter may have.
struct ArgumentType {
  bool string = false, integer = false, number = false, boolean = false, null = false, object = false, array = false;

  bool unknown() const { return !(string || integer || number || boolean || null || object || array); }
  bool only_string() const { return string && !(integer || number || boolean || null || object || array); }
};

namespace constrain {

struct ArgumentNotation {
  enum class Values : uint8_t {
    python,  // JSON's notation with Python's words: True, False, None
    quoted,  // strings are their own text between two of `quote`, names of properties are bare; else as JSON
    tagged,  // at the top strings are their own text without quotes, other values are JSON; within these all is JSON
  };
  Values values = Values::python;
  // Every text may be the spelling of a special token; empty ones are left out.
  std::string open = {}, between = {}, close = {};  // of all arguments
  std::vector<std::string> before_name = {}, after_name = {}, after_value = {};
  // Of `tagged`, in place of after_name: before a value that is a string. Empty: the same.
  std::vector<std::string> before_text = {};
  std::string quote = {};  // of `quoted`

  // What follows is of `tagged`.
  std::vector<std::string> stops = {};       // no value contains one of these
  std::vector<std::string> null_words = {};  // in lower case: no string is one of these in any case
  bool trims = false;                        // a string does not begin or end with white space
  // What the format's reader makes of a value, by the name of its parameter; of all others `other_type`.
  std::vector<std::pair<std::string, ArgumentType>> types = {};
  ArgumentType other_type = {};
  bool any_text = false;  // a value is any text; there is no schema

  ArgumentType type_of(std::string_view name) const;
  std::string key() const;  // different notations have different keys
};

}  // namespace constrain
}  // namespace easydel::text
