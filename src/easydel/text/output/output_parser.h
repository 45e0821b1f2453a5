// Splits a model's answer into reasoning, content and tool calls. One parser reads one answer, in any number of pieces;
// the total result does not depend on how the answer was split.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "easydel/base/document.h"

namespace easydel::text {

struct ToolCall {
  std::string id, name;   // id: empty if the format has none
  std::string arguments;  // JSON, spaced as Python's json.dumps
};

// The calls as a list of OpenAI's objects {id, type, function: {name, arguments}}; those without an id have none.
Value tool_calls_document(const std::vector<ToolCall>& calls);

struct Message {
  std::string content, reasoning;
  std::vector<ToolCall> tool_calls;
};

// The result of one piece of text. `content`, `reasoning` and `arguments` are appended to earlier ones. In rare cases
// earlier output is withdrawn: a call turns out not to be one (it is truncated, or not JSON), or the format reveals
// later that earlier text was not content. What was sent to a client cannot be withdrawn: see OutputOptions::certain.
struct Delta {
  struct Call : ToolCall {
    size_t index = 0;
    bool withdrawn = false;  // the call `index`, the last one, was not a call
  };
  bool content_withdrawn = false;  // drop all earlier content before `content` is appended
  std::string content, reasoning;
  std::vector<Call> calls;

  bool empty() const { return !content_withdrawn && content.empty() && reasoning.empty() && calls.empty(); }
};

void apply(const Delta& delta, Message& message);

struct OutputOptions {
  Value tools = {};                // schemas, as in a request; they give the types of arguments
  bool parse_tools = true;         // false: calls are content
  bool separate_reasoning = true;  // false: reasoning stays in the content, unchanged
  // The beginning of the answer that the prompt already contains ("<think>\n").
  std::string begun = {};
  // Whether the request asked for reasoning; unset: the format's default.
  enum class Thinking : uint8_t { unset, on, off } thinking = Thinking::unset;
  bool json_content = false;  // content must be JSON: a Markdown fence around it is removed
  // Deltas hold back what might still be withdrawn, so none of them withdraws anything: a call until it is complete,
  // content until the end where a later call or end of reasoning would change it. The total result is the same.
  bool certain = false;
};

// Names or aliases of tool_parser_names() and reasoning_parser_names(). Empty or "none": no parser.
struct OutputFormat {
  std::string tools, reasoning;
};

// One per answer; not thread-safe.
class OutputParser {
 public:
  // UserError: an unknown name.
  explicit OutputParser(const OutputFormat& format, OutputOptions options = {});
  ~OutputParser();
  OutputParser(OutputParser&&) noexcept;

  Delta feed(std::string_view text);
  Delta finish();  // end of the answer: returns what was held back

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

Message parse_output(std::string_view text, const OutputFormat& format, OutputOptions options = {});

// The format of answers, from a chat template and config.json's model_type ("": unknown).
OutputFormat detect_output_format(std::string_view chat_template, std::string_view model_type = "");

// The part of the answer that the end of a prompt contains: an opened "<think>\n", reasoning that is switched off, or
// "".
std::string begun_answer(std::string_view prompt, const OutputFormat& format);

std::vector<std::string> tool_parser_names();       // canonical names, in order
std::vector<std::string> reasoning_parser_names();  // canonical names, in order

}  // namespace easydel::text
