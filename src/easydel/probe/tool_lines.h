// Implements `probe tools`: one line of JSON in, one line of JSON out.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "easydel/text/chat_template.h"
#include "easydel/text/output/output_parser.h"

namespace easydel::probe {

// {"text", "tools"?, "options"?} -> {"content", "reasoning", "tool_calls": [{"name", "arguments"}]}
// options: reasoning_format (none: reasoning stays in the content), enable_thinking, tool_choice (none: calls are
// content), json_schema (content is JSON), is_partial (the text is truncated), parser.
class ToolsProbe {
 public:
  struct Options {
    std::string parser;     // a name, or "auto": by the template
    std::string reasoning;  // a name; empty: with auto by the template, else none
    std::filesystem::path template_file;
    bool stream = false;  // character by character
  };
  explicit ToolsProbe(Options options);
  std::string answer(std::string_view line) const;

 private:
  Options options_;
  text::OutputFormat format_;
  std::unique_ptr<const text::ChatTemplate> template_;
};

}  // namespace easydel::probe
