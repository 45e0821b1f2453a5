// The kinds of tool-call formats. Each kind has one reader and a struct with the differences between its formats.
#pragma once

#include <string>
#include <vector>

#include "easydel/text/output/message_sink.h"
#include "easydel/text/output/reading.h"
#include "easydel/text/output/tool_schema.h"

namespace easydel::text {

struct ReadContext {
  Incoming& in;
  MessageSink& sink;
  const ToolSchemas& schemas;
  const OutputOptions& options;
  Markers noise;  // markers that are not content
  // If set: this marker in the content (`</think>`) means that everything before it was reasoning.
  std::string late_reasoning_end;
};

// Reads content until one of `stops`, which is not taken; none_index: the text ended.
Task<size_t> read_content(ReadContext& context, const Markers& stops);

// Reads reasoning that is not separated: it is content, in which no calls are searched.
Task<> read_thinking_as_content(ReadContext& context, const std::string& open, const std::string& close);

// Calls as JSON objects, {"name": "f", "arguments": {...}}, or lists of them, after a marker or bare.
struct JsonCalls {
  Markers opens = {};
  Markers closes = {};
  bool bare_object = false, bare_list = false;  // also without a marker
  bool skips_bad_lines = false;                 // after a line that is not a call, the next line may be one
  bool name_is_key = false;                     // {"f": {...}}
  std::vector<std::string> name_keys = {"name", "tool_name"};
  std::vector<std::string> argument_keys = {"arguments", "parameters"};
};
Task<> read_json_calls(ReadContext& context, const JsonCalls& format);
// Reads one call or a list of calls at the current position. false: something is not a call.
Task<bool> read_json_call_list(ReadContext& context, const JsonCalls& format);

// A name between markers, then its arguments as a JSON object: [TOOL_CALLS]f[ARGS]{...}.
struct NamedCalls {
  Markers sections = {};         // markers before the first call and between calls; dropped
  std::string open = {};         // before each call
  std::string before_name = {};  // the name begins after this; text before it is a type
  Markers name_ends = {};        // these are taken, except "{"
  std::string id_open = {};      // an id between name and arguments: [CALL_ID]...[ARGS]
  std::string fence = {};        // "```json" around the arguments
  std::string close = {};
  bool indexed_names = false;     // functions.NAME:0, which is also the id; or 0 alone
  bool list_too = false;          // also a list of {"name", "arguments"} after `open`
  bool forgets_marker = false;    // text that is not a call becomes content without `open`
  bool keeps_unfinished = false;  // a call with truncated arguments is kept
};
Task<> read_named_calls(ReadContext& context, const NamedCalls& format);

// Arguments between tags: <function=f><parameter=a>1</parameter></function>.
struct TaggedCalls {
  Markers sections = {};  // open a list of calls
  Markers section_ends = {};
  std::string open = {};       // before a name: "<function="
  std::string name_end = {};   // ">"; the name itself may be quoted
  std::string close = {};      // "</function>"
  std::string parameter = {};  // before a parameter's name: "<parameter="
  std::string parameter_name_end = {};
  std::string value_open = {};  // "<arg_value>"
  std::string value_close = {};
  bool needs_section = false;  // outside a section, calls are content
  bool keeps_space = false;    // keep white space around values; false: remove one line break at each end
  bool strips_values = false;  // remove all white space around values
  bool guesses_types = false;
  std::vector<std::string_view> nulls = {};  // words (in lower case) that mean null for every type
};
Task<> read_tagged_calls(ReadContext& context, const TaggedCalls& format);

// Python's calls: [f(a=1), g()].
struct PythonCalls {
  Markers opens = {};  // empty: the text begins with "["
  Markers closes = {};
  bool bare_list = false;
  bool lines = false;  // calls without brackets, one per line
};
Task<> read_python_calls(ReadContext& context, const PythonCalls& format);
// Reads name(a=1, b='x') at the current position.
Task<bool> read_python_call(ReadContext& context);

// Gemma's: call:f{a:<escape>text<escape>,b:1}.
struct GemmaCalls {
  std::string open, close, quote;
};
Task<> read_gemma_calls(ReadContext& context, const GemmaCalls& format);

// OpenAI's harmony: channels of messages, calls by their recipient.
Task<> read_harmony(ReadContext& context);

// MiniCPM's XML, checked against the schemas.
Task<> read_minicpm_calls(ReadContext& context);

}  // namespace easydel::text
