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

constexpr ArgumentType text_type{.string = true};
constexpr ArgumentType any_type{true, true, true, true, true, true, true};
using constrain::ArgumentNotation;

// f(a=1, b='x').
CallShape python_calls(CallShape::Pieces open, std::string_view between, CallShape::Pieces close) {
  return {
      .open = std::move(open),
      .after_name = {"("},
      .after_arguments = {")"},
      .between = {between},
      .close = std::move(close),
      .arguments = ArgumentNotation{.values = ArgumentNotation::Values::python, .between = ", ", .after_name = {"="}}};
}

// call:f{a:1,b:<escape>x<escape>}.
CallShape gemma_calls(std::string_view open, std::string_view close, std::string quote) {
  return {.before_name = {open, "call:"},
          .after_arguments = {close},
          .arguments = ArgumentNotation{.values = ArgumentNotation::Values::quoted,
                                        .open = "{",
                                        .between = ",",
                                        .close = "}",
                                        .after_name = {":"},
                                        .quote = std::move(quote)}};
}

// <function=f>, and a line break around values.
CallShape qwen_tags_calls() {
  return {.before_name = {"<tool_call>", "\n<function="},
          .after_name = {">\n"},
          .after_arguments = {"</function>\n", "</tool_call>"},
          .arguments = ArgumentNotation{.values = ArgumentNotation::Values::tagged,
                                        .before_name = {"<parameter="},
                                        .after_name = {">\n"},
                                        .after_value = {"\n</parameter>\n"},
                                        .stops = {"</parameter>", "<parameter=", "</function>"},
                                        .null_words = {"null"},
                                        .other_type = text_type}};
}

// `lines`: each element of a call on a line of its own.
CallShape glm_calls(bool lines) {
  const std::string blank = lines ? "\n" : "";
  return {.before_name = {"<tool_call>"},
          .after_name = lines ? CallShape::Pieces{"\n"} : CallShape::Pieces{},
          .after_arguments = {"</tool_call>"},
          .arguments = ArgumentNotation{.values = ArgumentNotation::Values::tagged,
                                        .before_name = {"<arg_key>"},
                                        .after_name = {"</arg_key>", blank, "<arg_value>"},
                                        .after_value = {"</arg_value>", blank},
                                        .stops = {"</arg_value>", "<arg_key>", "</tool_call>"},
                                        .other_type = any_type}};
}

CallShape minimax_m2_calls() {
  return {.open = {"<minimax:tool_call>", "\n"},
          .before_name = {"<invoke name=\""},
          .after_name = {"\">\n"},
          .after_arguments = {"</invoke>\n"},
          .close = {"</minimax:tool_call>"},
          .arguments = ArgumentNotation{.values = ArgumentNotation::Values::tagged,
                                        .before_name = {"<parameter name=\""},
                                        .after_name = {"\">"},
                                        .after_value = {"</parameter>\n"},
                                        .stops = {"</parameter>", "<parameter name=", "</invoke>"},
                                        .null_words = {"null", "none", "nil"},
                                        .trims = true,
                                        .other_type = text_type}};
}

CallShape deepseek_v32_calls() {
  return {
      .open = {"<｜DSML｜function_calls>", "\n"},
      .before_name = {"<｜DSML｜invoke name=\""},
      .after_name = {"\">\n"},
      .after_arguments = {"</｜DSML｜invoke>\n"},
      .close = {"</｜DSML｜function_calls>"},
      .arguments = ArgumentNotation{.values = ArgumentNotation::Values::tagged,
                                    .before_name = {"<｜DSML｜parameter name=\""},
                                    .after_name = {"\" string=\"false\">"},
                                    .after_value = {"</｜DSML｜parameter>\n"},
                                    .before_text = {"\" string=\"true\">"},
                                    .stops = {"</｜DSML｜parameter>", "<｜DSML｜parameter name=", "</｜DSML｜invoke>"},
                                    .other_type = text_type}};
}

CallShape step3_calls() {
  return {
      .open = {"<｜tool_calls_begin｜>"},
      .before_name = {"<｜tool_call_begin｜>", "function", "<｜tool_sep｜>", "<steptml:invoke name=\""},
      .after_name = {"\">"},
      .after_arguments = {"</steptml:invoke>", "<｜tool_call_end｜>"},
      .close = {"<｜tool_calls_end｜>"},
      .arguments = ArgumentNotation{.values = ArgumentNotation::Values::tagged,
                                    .before_name = {"<steptml:parameter name=\""},
                                    .after_name = {"\">"},
                                    .after_value = {"</steptml:parameter>"},
                                    .stops = {"</steptml:parameter>", "<steptml:parameter name=", "</steptml:invoke>"},
                                    .trims = true,
                                    .other_type = text_type}};
}

CallShape seed_oss_calls() {
  CallShape out = qwen_tags_calls();
  out.before_name = {"<seed:tool_call>", "\n<function="};
  out.after_arguments = {"</function>\n", "</seed:tool_call>"};
  out.arguments->after_name = {">"};
  out.arguments->after_value = {"</parameter>\n"};
  out.arguments->trims = true;
  return out;
}

// Readers decode XML's entities, so no value may spell one.
CallShape minicpm5xml_calls() {
  return {.before_name = {"<function name=\""},
          .after_name = {"\">"},
          .after_arguments = {"</function>"},
          .arguments = ArgumentNotation{
              .values = ArgumentNotation::Values::tagged,
              .before_name = {"<param name=\""},
              .after_name = {"\">"},
              .after_value = {"</param>"},
              .stops = {"</param>", "</function>", "<![CDATA[", "&lt;", "&gt;", "&amp;", "&quot;", "&apos;"},
              .trims = true,
              .other_type = text_type}};
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
    {"deepseek_v32", deepseek_v32_calls()},
    {"ernie45", tagged_json("<tool_call>", "</tool_call>")},
    {"functionary", {.before_name = {"<function="}, .after_name = {">"}, .after_arguments = {"</function>"}}},
    {"functiongemma", gemma_calls("<start_function_call>", "<end_function_call>", "<escape>")},
    {"gemma4", gemma_calls("<|tool_call>", "<tool_call|>", "<|\"|>")},
    {"gigachat3", bare_json({"function call", "<|role_sep|>", "\n"}, "\", \"arguments\": ")},
    {"glm45", glm_calls(true)},
    {"glm47", glm_calls(false)},
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
    {"lfm2", python_calls({"<|tool_call_start|>", "["}, ", ", {"]", "<|tool_call_end|>"})},
    {"llama3_json", bare_json()},
    {"llama4_json", bare_json()},
    {"llama4_pythonic", python_calls({"["}, ", ", {"]"})},
    {"longcat", tagged_json("<longcat_tool_call>", "</longcat_tool_call>")},
    {"minimax",
     {.open = {"<tool_calls>", "\n"},
      .before_name = {"{\"name\": \""},
      .after_name = {"\", \"arguments\": "},
      .after_arguments = {"}\n"},
      .close = {"</tool_calls>"}}},
    {"minicpm5xml", minicpm5xml_calls()},
    {"minimax_m2", minimax_m2_calls()},
    {"mistral", json_list({"[TOOL_CALLS]", "["}, {"]"})},
    {"nemotron", json_list({"<TOOLCALL>", "["}, {"]", "</TOOLCALL>"})},
    {"olmo3", python_calls({"<function_calls>"}, "\n", {"</function_calls>"})},
    {"phi4_mini_json", json_list({"functools", "["}, {"]"})},
    {"pythonic", python_calls({"["}, ", ", {"]"})},
    {"qwen3_coder", qwen_tags_calls()},
    {"qwen3_xml", qwen_tags_calls()},
    {"seed_oss", seed_oss_calls()},
    {"step3", step3_calls()},
    {"step3p5", qwen_tags_calls()},
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
