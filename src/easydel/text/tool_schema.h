// What the tools' JSON Schemas say about arguments, for formats that write them as bare text.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "easydel/base/document.h"

namespace easydel::text {

// The types that a parameter may have.
struct ArgumentType {
  bool string = false, integer = false, number = false, boolean = false, null = false, object = false, array = false;

  bool unknown() const { return !(string || integer || number || boolean || null || object || array); }
  bool only_string() const { return string && !(integer || number || boolean || null || object || array); }
};

class ToolSchemas {
 public:
  // A list of {"type": "function", "function": {"name", "parameters"}}, or of the inner maps; what is none is passed
  // over.
  explicit ToolSchemas(Value tools = {});

  bool empty() const { return tools_.items.empty(); }
  size_t size() const { return tools_.items.size(); }
  std::string name(size_t index) const;                  // "" where it has none
  const Value* parameters(std::string_view tool) const;  // nullptr: no such tool, or it takes none
  bool knows(std::string_view tool) const;
  const Value* property(std::string_view tool, std::string_view parameter) const;  // nullptr: there is none
  ArgumentType type_of(std::string_view tool, std::string_view parameter) const;

 private:
  const Value* tool_at(size_t index) const;
  const Value* tool(std::string_view name) const;
  Value tools_;
};

std::string lowered(std::string_view text);  // ASCII, of a word: at most its first 16 bytes

// `text` as JSON of one of the types, the narrowest that fits; else as a string. Of an unknown type: a string, or
// where `guesses` whatever value it reads as.
std::string coerced(std::string_view text, const ArgumentType& type, bool guesses);

}  // namespace easydel::text
