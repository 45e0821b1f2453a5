// Answers of models taken apart, as one line of text.
#pragma once

#include <string>

#include "easydel/text/output/output_parser.h"

namespace easydel::text {

inline std::string as_text(const Message& message) {
  std::string out = "content[" + message.content + "] reasoning[" + message.reasoning + "]";
  for (const ToolCall& call : message.tool_calls) out += " " + call.id + ":" + call.name + call.arguments;
  return out;
}

inline std::string parsed(const std::string& format, const std::string& text, const std::string& reasoning = "",
                          OutputOptions options = {}) {
  return as_text(parse_output(text, {format, reasoning}, std::move(options)));
}

inline OutputOptions with_tools(const std::string& tools) {
  OutputOptions out;
  out.tools = parse_json(tools);
  return out;
}

}  // namespace easydel::text
