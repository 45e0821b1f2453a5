#include "easydel/text/output/call_shapes.h"

#include <string>

#include "easydel/text/output/tool_parsers.h"

namespace easydel::text {
namespace {

// A list of objects, {"name": "f", "arguments": {...}}, between markers.
CallShape json_list(CallShape::Pieces open, CallShape::Pieces close) {
  return {.open = std::move(open),
          .before_name = {"{\"name\": \""},
          .after_name = {"\", \"arguments\": "},
          .after_arguments = {"}"},
          .between = {", "},
          .close = std::move(close)};
}

// One object a line, each between tags.
CallShape tagged_json(std::string_view open, std::string_view close) {
  return {.before_name = {open, "\n{\"name\": \""},
          .after_name = {"\", \"arguments\": "},
          .after_arguments = {"}\n", close},
          .between = {"\n"}};
}

CallShape bare_json(CallShape::Pieces open = {}, std::string_view arguments = "\", \"parameters\": ") {
  return {.open = std::move(open),
          .before_name = {"{\"name\": \""},
          .after_name = {arguments},
          .after_arguments = {"}"},
          .several = false};
}

struct NamedShape {
  std::string_view name;  // of the format
  CallShape shape;
};

const NamedShape shapes[] = {
    {"apertus",
     {.open = {"<|tools_prefix|>", "["},
      .before_name = {"{\""},
      .after_name = {"\": "},
      .after_arguments = {"}"},
      .between = {", "},
      .close = {"]", "<|tools_suffix|>"}}},
    {"cohere_command",
     {.open = {"<|START_ACTION|>", "["},
      .before_name = {"{\"tool_name\": \""},
      .after_name = {"\", \"parameters\": "},
      .after_arguments = {"}"},
      .between = {", "},
      .close = {"]", "<|END_ACTION|>"}}},
    {"deepseek_v3",
     {.open = {"<｜tool▁calls▁begin｜>"},
      .before_name = {"<｜tool▁call▁begin｜>", "function", "<｜tool▁sep｜>"},
      .after_name = {"\n```json\n"},
      .after_arguments = {"\n```", "<｜tool▁call▁end｜>"},
      .between = {"\n"},
      .close = {"<｜tool▁calls▁end｜>"}}},
    {"deepseek_v31",
     {.open = {"<｜tool▁calls▁begin｜>"},
      .before_name = {"<｜tool▁call▁begin｜>"},
      .after_name = {"<｜tool▁sep｜>"},
      .after_arguments = {"<｜tool▁call▁end｜>"},
      .close = {"<｜tool▁calls▁end｜>"}}},
    {"ernie45", tagged_json("<tool_call>", "</tool_call>")},
    {"functionary", {.before_name = {"<function="}, .after_name = {">"}, .after_arguments = {"</function>"}}},
    {"gigachat3", bare_json({"function call", "<|role_sep|>", "\n"}, "\", \"arguments\": ")},
    {"granite", json_list({"<|tool_call|>", "["}, {"]"})},
    {"granite_20b_fc",
     {.before_name = {"<function_call>", " {\"name\": \""},
      .after_name = {"\", \"arguments\": "},
      .after_arguments = {"}"},
      .between = {"\n"}}},
    {"hermes", tagged_json("<tool_call>", "</tool_call>")},
    {"hunyuan_a13b", json_list({"<tool_calls>", "["}, {"]", "</tool_calls>"})},
    {"internlm",
     {.before_name = {"<|action_start|>", "<|plugin|>", "\n{\"name\": \""},
      .after_name = {"\", \"parameters\": "},
      .after_arguments = {"}\n", "<|action_end|>"},
      .several = false}},
    {"jamba", json_list({"<tool_calls>", "["}, {"]", "</tool_calls>"})},
    {"kimi_k2",
     {.open = {"<|tool_calls_section_begin|>"},
      .before_name = {"<|tool_call_begin|>", "functions."},
      .after_name = {"<|tool_call_argument_begin|>"},
      .after_arguments = {"<|tool_call_end|>"},
      .close = {"<|tool_calls_section_end|>"},
      .numbered = true}},
    {"llama3_json", bare_json()},
    {"llama4_json", bare_json()},
    {"longcat", tagged_json("<longcat_tool_call>", "</longcat_tool_call>")},
    {"minimax",
     {.open = {"<tool_calls>", "\n"},
      .before_name = {"{\"name\": \""},
      .after_name = {"\", \"arguments\": "},
      .after_arguments = {"}\n"},
      .close = {"</tool_calls>"}}},
    {"mistral", json_list({"[TOOL_CALLS]", "["}, {"]"})},
    {"nemotron", json_list({"<TOOLCALL>", "["}, {"]", "</TOOLCALL>"})},
    {"phi4_mini_json", json_list({"functools", "["}, {"]"})},
    {"xlam", json_list({"["}, {"]"})},
};

}  // namespace

const CallShape* find_call_shape(std::string_view format) {
  const ToolFormat* const known = find_tool_format(format);
  for (const NamedShape& one : shapes)
    if (known && one.name == known->name) return &one.shape;
  return nullptr;
}

}  // namespace easydel::text
