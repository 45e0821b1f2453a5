// The formats of tool calls. Most are a kind of tool_formats.h with a model family's markers, which are those of its
// chat template.
#include "easydel/text/output/tool_parsers.h"

#include <algorithm>

namespace easydel::text {
namespace {

Task<> read_hermes(ReadContext& context) {
  static const JsonCalls format{.opens = {"<tool_call>"}, .closes = {"</tool_call>"}};
  return read_json_calls(context, format);
}

Task<> read_granite(ReadContext& context) {
  static const JsonCalls format{.opens = {"<|tool_call|>", "<tool_call>"}, .closes = {"</tool_call>"}};
  return read_json_calls(context, format);
}

Task<> read_granite_20b(ReadContext& context) {
  static const JsonCalls format{.opens = {"<function_call>"}, .closes = {"</function_call>"}};
  return read_json_calls(context, format);
}

Task<> read_internlm(ReadContext& context) {
  static const JsonCalls format{.opens = {"<|action_start|><|plugin|>", "<|action_start|> <|plugin|>"},
                                .closes = {"<|action_end|>"}};
  return read_json_calls(context, format);
}

// A list between <tool_calls> tags, or one call per line.
Task<> read_tool_calls_tag(ReadContext& context) {
  static const JsonCalls format{.opens = {"<tool_calls>"}, .closes = {"</tool_calls>"}, .skips_bad_lines = true};
  return read_json_calls(context, format);
}

Task<> read_hunyuan(ReadContext& context) {
  context.sink.trims_before_calls = false;
  co_await read_thinking_as_content(context, "<think>", "</think>");
  co_await read_tool_calls_tag(context);
}

Task<> read_minimax(ReadContext& context) {
  co_await read_thinking_as_content(context, "<think>", "</think>");
  co_await read_tool_calls_tag(context);
}

Task<> read_longcat(ReadContext& context) {
  static const JsonCalls format{.opens = {"<longcat_tool_call>"}, .closes = {"</longcat_tool_call>"}};
  return read_json_calls(context, format);
}

Task<> read_functools(ReadContext& context) {
  static const JsonCalls format{.opens = {"functools", "<|tool_call|>"}, .closes = {"<|/tool_call|>"}};
  return read_json_calls(context, format);
}

// Llama writes bare JSON as the whole answer: text around it is not content.
Task<> read_llama_json(ReadContext& context) {
  static const JsonCalls format{.opens = {"<|python_tag|>"}, .closes = {"<|eom_id|>"}, .bare_object = true};
  context.sink.content_excludes_calls = true;
  return read_json_calls(context, format);
}

// Llama 4 may put them between its markers for Python.
Task<> read_llama4_json(ReadContext& context) {
  static const JsonCalls format{
      .opens = {"<|python_start|>"}, .closes = {"<|python_end|>", "<|eom|>"}, .bare_object = true};
  context.sink.content_excludes_calls = true;
  return read_json_calls(context, format);
}

Task<> read_xlam(ReadContext& context) {
  static const JsonCalls format{
      .opens = {"<tool_call>", "[TOOL_CALLS]", "```json", "```"}, .closes = {"</tool_call>", "```"}, .bare_list = true};
  return read_json_calls(context, format);
}

Task<> read_gigachat(ReadContext& context) {
  static const JsonCalls format{
      .opens = {"<|function_call|>", "function call<|role_sep|>\n", "function call<|role_sep|>"},
      .closes = {"<|message_sep|>", "</s>"}};
  context.noise.insert(context.noise.end(), {"<|message_sep|>", "</s>"});
  return read_json_calls(context, format);
}

Task<> read_cohere(ReadContext& context) {
  static const JsonCalls format{.opens = {"<|START_ACTION|>"}, .closes = {"<|END_ACTION|>"}};
  return read_json_calls(context, format);
}

Task<> read_nemotron(ReadContext& context) {
  static const JsonCalls format{.opens = {"<TOOLCALL>"}, .closes = {"</TOOLCALL>"}};
  return read_json_calls(context, format);
}

Task<> read_apertus(ReadContext& context) {
  static const JsonCalls format{.opens = {"<|tools_prefix|>"}, .closes = {"<|tools_suffix|>"}, .name_is_key = true};
  return read_json_calls(context, format);
}

Task<> read_deepseek_v3(ReadContext& context) {
  static const NamedCalls format{.sections = {"<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"},
                                 .open = "<｜tool▁call▁begin｜>",
                                 .before_name = "<｜tool▁sep｜>",
                                 .name_ends = {"\n"},
                                 .fence = "```json",
                                 .close = "<｜tool▁call▁end｜>"};
  context.sink.trims_before_calls = false;
  return read_named_calls(context, format);
}

Task<> read_deepseek_v31(ReadContext& context) {
  static const NamedCalls format{.sections = {"<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"},
                                 .open = "<｜tool▁call▁begin｜>",
                                 .name_ends = {"<｜tool▁sep｜>"},
                                 .close = "<｜tool▁call▁end｜>"};
  context.sink.trims_before_calls = false;
  return read_named_calls(context, format);
}

Task<> read_kimi_k2(ReadContext& context) {
  static const NamedCalls format{.sections = {"<|tool_calls_section_begin|>", "<|tool_calls_section_end|>",
                                              "<|tool_call_section_begin|>", "<|tool_call_section_end|>"},
                                 .open = "<|tool_call_begin|>",
                                 .name_ends = {"<|tool_call_argument_begin|>"},
                                 .close = "<|tool_call_end|>",
                                 .indexed_names = true,
                                 .keeps_unfinished = true};
  context.sink.trims_before_calls = false;
  return read_named_calls(context, format);
}

Task<> read_mistral(ReadContext& context) {
  static const NamedCalls format{.open = "[TOOL_CALLS]",
                                 .name_ends = {"[CALL_ID]", "[ARGS]", "{"},
                                 .id_open = "[CALL_ID]",
                                 .list_too = true,
                                 .forgets_marker = true,
                                 .keeps_unfinished = true};
  return read_named_calls(context, format);
}

Task<> read_functionary(ReadContext& context) {
  static const NamedCalls format{.open = "<function=", .name_ends = {">"}, .close = "</function>"};
  return read_named_calls(context, format);
}

Task<> read_qwen_tags(ReadContext& context) {
  static const TaggedCalls format{.sections = {"<tool_call>"},
                                  .section_ends = {"</tool_call>"},
                                  .open = "<function=",
                                  .name_end = ">",
                                  .close = "</function>",
                                  .parameter = "<parameter=",
                                  .parameter_name_end = ">",
                                  .value_close = "</parameter>",
                                  .nulls = {"null"}};
  context.sink.trims_before_calls = false;
  return read_tagged_calls(context, format);
}

Task<> read_seed_oss(ReadContext& context) {
  static const TaggedCalls format{.sections = {"<seed:tool_call>"},
                                  .section_ends = {"</seed:tool_call>"},
                                  .open = "<function=",
                                  .name_end = ">",
                                  .close = "</function>",
                                  .parameter = "<parameter=",
                                  .parameter_name_end = ">",
                                  .value_close = "</parameter>",
                                  .nulls = {"null"}};
  context.sink.trims_before_calls = false;
  co_await read_thinking_as_content(context, "<seed:think>", "</seed:think>");
  co_await read_tagged_calls(context, format);
}

Task<> read_glm(ReadContext& context) {
  static const TaggedCalls format{.sections = {"<tool_call>"},
                                  .name_end = "\n",
                                  .close = "</tool_call>",
                                  .parameter = "<arg_key>",
                                  .parameter_name_end = "</arg_key>",
                                  .value_open = "<arg_value>",
                                  .value_close = "</arg_value>",
                                  .needs_section = true,
                                  .keeps_space = true,
                                  .guesses_types = true};
  context.sink.trims_before_calls = false;
  return read_tagged_calls(context, format);
}

Task<> read_minimax_m2(ReadContext& context) {
  static const TaggedCalls format{.sections = {"<minimax:tool_call>"},
                                  .section_ends = {"</minimax:tool_call>"},
                                  .open = "<invoke name=",
                                  .name_end = ">",
                                  .close = "</invoke>",
                                  .parameter = "<parameter name=",
                                  .parameter_name_end = ">",
                                  .value_close = "</parameter>",
                                  .needs_section = true,
                                  .strips_values = true,
                                  .nulls = {"null", "none", "nil"}};
  context.sink.trims_before_calls = false;
  return read_tagged_calls(context, format);
}

Task<> read_deepseek_dsml(ReadContext& context) {
  static const TaggedCalls format{.sections = {"<｜DSML｜function_calls>", "<｜DSML｜tool_calls>"},
                                  .section_ends = {"</｜DSML｜function_calls>", "</｜DSML｜tool_calls>"},
                                  .open = "<｜DSML｜invoke name=",
                                  .name_end = ">",
                                  .close = "</｜DSML｜invoke>",
                                  .parameter = "<｜DSML｜parameter name=",
                                  .parameter_name_end = ">",
                                  .value_close = "</｜DSML｜parameter>",
                                  .needs_section = true,
                                  .keeps_space = true};
  context.sink.trims_before_calls = false;
  return read_tagged_calls(context, format);
}

Task<> read_step3(ReadContext& context) {
  static const TaggedCalls format{.sections = {"<｜tool_calls_begin｜>", "<｜tool_call_begin｜>"},
                                  .section_ends = {"<｜tool_calls_end｜>"},
                                  .open = "<steptml:invoke name=",
                                  .name_end = ">",
                                  .close = "</steptml:invoke>",
                                  .parameter = "<steptml:parameter name=",
                                  .parameter_name_end = ">",
                                  .value_close = "</steptml:parameter>",
                                  .needs_section = true};
  context.noise.insert(context.noise.end(), {"<｜tool_call_end｜>", "<｜tool_calls_end｜>", "<｜tool_sep｜>"});
  return read_tagged_calls(context, format);
}

Task<> read_pythonic(ReadContext& context) {
  static const PythonCalls format{.opens = {}, .closes = {}, .bare_list = true};
  return read_python_calls(context, format);
}

Task<> read_llama4_pythonic(ReadContext& context) {
  static const PythonCalls format{.opens = {"<|python_start|>"}, .closes = {"<|python_end|>"}, .bare_list = true};
  return read_python_calls(context, format);
}

Task<> read_olmo3(ReadContext& context) {
  static const PythonCalls format{.opens = {"<function_calls>"}, .closes = {"</function_calls>"}, .lines = true};
  return read_python_calls(context, format);
}

Task<> read_lfm2(ReadContext& context) {
  static const PythonCalls format{.opens = {"<|tool_call_start|>"}, .closes = {"<|tool_call_end|>"}};
  return read_python_calls(context, format);
}

Task<> read_functiongemma(ReadContext& context) {
  static const GemmaCalls format{"<start_function_call>", "<end_function_call>", "<escape>"};
  return read_gemma_calls(context, format);
}

Task<> read_gemma4(ReadContext& context) {
  static const GemmaCalls format{"<|tool_call>", "<tool_call|>", "<|\"|>"};
  return read_gemma_calls(context, format);
}

const ToolFormat formats[] = {
    {"apertus", {}, read_apertus},
    {"cohere_command", {"command_r7b"}, read_cohere},
    {"deepseek_v3", {"deepseekv3", "deepseek_r1"}, read_deepseek_v3},
    {"deepseek_v31", {"deepseekv31"}, read_deepseek_v31},
    {"deepseek_v32", {"deepseekv32", "deepseek_v4"}, read_deepseek_dsml},
    {"ernie45", {"ernie45_moe"}, read_hermes},
    {"functionary", {"functionary_v31"}, read_functionary},
    {"functiongemma", {}, read_functiongemma},
    {"gemma4", {}, read_gemma4},
    {"gigachat3", {}, read_gigachat},
    {"glm45", {"glm_4.5", "glm4_moe"}, read_glm},
    {"glm47", {"glm_4.7", "glm47_moe"}, read_glm},
    {"granite", {"granite4"}, read_granite},
    {"granite_20b_fc", {}, read_granite_20b},
    {"hermes", {}, read_hermes},
    {"hunyuan_a13b", {"apriel"}, read_hunyuan},
    {"internlm", {"internlm2"}, read_internlm},
    {"jamba", {}, read_tool_calls_tag},
    {"kimi_k2", {}, read_kimi_k2},
    {"lfm2", {}, read_lfm2},
    {"llama3_json", {}, read_llama_json},
    {"llama4_json", {}, read_llama4_json},
    {"llama4_pythonic", {}, read_llama4_pythonic},
    {"longcat", {}, read_longcat},
    {"minicpm5xml", {"minicpm5"}, read_minicpm_calls},
    {"minimax", {"minimax_m1"}, read_minimax},
    {"minimax_m2", {}, read_minimax_m2},
    {"mistral", {}, read_mistral},
    {"nemotron", {"nemotron_json"}, read_nemotron},
    {"olmo3", {}, read_olmo3},
    {"openai", {"gptoss", "gpt_oss", "openai_gptoss"}, read_harmony},
    {"phi4_mini_json", {"phi4mini", "firefunction"}, read_functools},
    {"pythonic", {}, read_pythonic},
    {"qwen3_coder", {"qwen3coder"}, read_qwen_tags},
    {"qwen3_xml", {"qwen3xml"}, read_qwen_tags},
    {"seed_oss", {}, read_seed_oss},
    {"step3", {}, read_step3},
    {"step3p5", {}, read_qwen_tags},
    {"xlam", {}, read_xlam},
};

}  // namespace

std::span<const ToolFormat> tool_formats() { return formats; }

const ToolFormat* find_tool_format(std::string_view name) {
  std::string spelled(name);
  std::replace(spelled.begin(), spelled.end(), '-', '_');
  for (const ToolFormat& format : formats)
    if (format.name == spelled ||
        std::find(format.aliases.begin(), format.aliases.end(), spelled) != format.aliases.end())
      return &format;
  return nullptr;
}

}  // namespace easydel::text
