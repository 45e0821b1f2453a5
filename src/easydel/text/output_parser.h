// What a model wrote, taken apart: reasoning, content and tool calls. One parser reads one answer, in any number of
// pieces; the sum of what it gives out does not depend on how the answer was cut.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "easydel/base/document.h"

namespace easydel::text {

struct ToolCall {
  std::string id, name;   // id: where the format has one, else empty
  std::string arguments;  // JSON, spaced as Python's json.dumps
};

struct Message {
  std::string content, reasoning;
  std::vector<ToolCall> tool_calls;
};

// What one piece of text added. `content`, `reasoning` and `arguments` are appended to what was given out before.
// Rarely something has to be taken back: a call turns out to be none (it is cut off, or no JSON), or a format says
// only later that what came before is no content. Where it is on the wire already, it stays there.
struct Delta {
  struct Call : ToolCall {
    size_t index = 0;
    bool withdrawn = false;  // the call `index`, the last one, was none
  };
  bool content_withdrawn = false;  // all content until now, before `content` is appended
  std::string content, reasoning;
  std::vector<Call> calls;

  bool empty() const { return !content_withdrawn && content.empty() && reasoning.empty() && calls.empty(); }
};

void apply(const Delta& delta, Message& message);

struct OutputOptions {
  Value tools = {};                // schemas, as in a request; types of arguments come from there
  bool parse_tools = true;         // false: calls are content
  bool separate_reasoning = true;  // false: reasoning stays in the content, as it was written
  // What the prompt already began of the answer ("<think>\n").
  std::string begun = {};
  // The request asked for reasoning or asked for none; unset: as the format does by itself.
  enum class Thinking : uint8_t { unset, on, off } thinking = Thinking::unset;
  bool json_content = false;  // content is to be JSON: a Markdown fence around it is taken off
};

// Names of tool_parser_names() and reasoning_parser_names(), or aliases of theirs. Empty or "none": there is none.
struct OutputFormat {
  std::string tools, reasoning;
};

// Not thread-safe; one for each answer.
class OutputParser {
 public:
  // UserError for a name that is not known.
  explicit OutputParser(const OutputFormat& format, OutputOptions options = {});
  ~OutputParser();
  OutputParser(OutputParser&&) noexcept;

  Delta feed(std::string_view text);
  Delta finish();  // the answer ends here; what was held back comes out

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

Message parse_output(std::string_view text, const OutputFormat& format, OutputOptions options = {});

// What a chat template and a config.json's model_type ("" where there is none) say about the answers.
OutputFormat detect_output_format(std::string_view chat_template, std::string_view model_type = "");

// What the end of a prompt already is of the answer: an opened "<think>\n", reasoning that is switched off, or "".
std::string begun_answer(std::string_view prompt, const OutputFormat& format);

std::vector<std::string> tool_parser_names();       // canonical names, in order
std::vector<std::string> reasoning_parser_names();  // canonical names, in order

}  // namespace easydel::text
