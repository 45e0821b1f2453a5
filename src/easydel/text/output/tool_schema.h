// Types of arguments from the tools' JSON Schemas, for formats that write values as bare text.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "easydel/base/document.h"
#include "easydel/text/constrain/argument_notation.h"

namespace easydel::text {

class ToolSchemas {
 public:
  // A list of {"type": "function", "function": {"name", "parameters"}}, or of the inner maps; other items are ignored.
  explicit ToolSchemas(Value tools = {});

  bool empty() const { return tools_.items.empty(); }
  size_t size() const { return tools_.items.size(); }
  std::string name(size_t index) const;                  // "": it has no name
  const Value* parameters(std::string_view tool) const;  // nullptr: no such tool, or it has no parameters
  bool knows(std::string_view tool) const;
  const Value* property(std::string_view tool, std::string_view parameter) const;  // nullptr: no such property
  ArgumentType type_of(std::string_view tool, std::string_view parameter) const;

 private:
  const Value* tool_at(size_t index) const;
  const Value* tool(std::string_view name) const;
  Value tools_;
};

std::string lowered(std::string_view text);  // ASCII lower case of at most the first 16 bytes

// Converts `text` to JSON of the narrowest of the types that fits, or else to a string. If the type is unknown: to a
// string, or, if `guesses`, to the value that it can be parsed as.
std::string coerced(std::string_view text, const ArgumentType& type, bool guesses);

}  // namespace easydel::text
