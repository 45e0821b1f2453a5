// Detects the format of a model's answers from the markers in its chat template, or else from the model's type.
#include <algorithm>
#include <array>

#include "easydel/text/output/output_parser.h"
#include "easydel/text/output/reasoning_parsers.h"

namespace easydel::text {
namespace {

// All of `marks` must be in the template. The first row that matches wins, so specific rows come before general ones.
struct Mark {
  std::array<std::string_view, 2> marks;
  std::string_view format;
};

constexpr Mark tool_marks[] = {
    {{"<|channel|>", "<|message|>"}, "openai"},
    {{"<start_function_call>"}, "functiongemma"},
    {{"<|tool_call>", "<tool_call|>"}, "gemma4"},
    {{"｜DSML｜"}, "deepseek_v32"},
    {{"<｜tool▁call▁begin｜>", "```json"}, "deepseek_v3"},
    {{"<｜tool▁call▁begin｜>"}, "deepseek_v31"},
    {{"<steptml:invoke"}, "step3"},
    {{"<seed:tool_call>"}, "seed_oss"},
    {{"minimax:tool_call"}, "minimax_m2"},
    {{"<longcat_tool_call>"}, "longcat"},
    {{"<|tool_call_begin|>"}, "kimi_k2"},
    {{"<arg_key>"}, "glm45"},
    {{"<function=", "<parameter="}, "qwen3_coder"},
    {{"<function=example_function_name>"}, "functionary"},
    {{"<function name="}, "minicpm5xml"},
    {{"<|START_ACTION|>"}, "cohere_command"},
    {{"<|tools_prefix|>"}, "apertus"},
    {{"<|tool_call_start|>"}, "lfm2"},
    {{"<|tool_list_start|>"}, "lfm2"},
    {{"<TOOLCALL>"}, "nemotron"},
    {{"<|function_call|>"}, "gigachat3"},
    {{"function call", "<|role_sep|>"}, "gigachat3"},
    {{"<|action_start|>"}, "internlm"},
    {{"[TOOL_CALLS]"}, "mistral"},
    {{"functools"}, "phi4_mini_json"},
    {{"{\"name\": \"tool_call_name\""}, "xlam"},
    {{"<tool_calls>", "<beginning_of_sentence>"}, "minimax"},
    {{"<tool_calls>", "<|bom|>"}, "jamba"},
    {{"<tool_calls>"}, "hunyuan_a13b"},
    {{"<function_calls>"}, "olmo3"},
    {{"<|tool_call|>"}, "granite"},
    {{"<function_call>"}, "granite_20b_fc"},
    {{"<tool_call>"}, "hermes"},
    {{"<|header_start|>", "{\"name\": function name"}, "llama4_json"},
    {{"<|python_start|>"}, "llama4_pythonic"},
    {{"[func_name1(params_name1"}, "pythonic"},
    {{"[func_name1(param"}, "llama4_pythonic"},
    {{"```tool_code"}, "pythonic"},
    {{"<|python_tag|>"}, "llama3_json"},
    {{"{\"name\": function name"}, "llama3_json"},
    {{"\"parameters\": dictionary of argument name"}, "llama3_json"},
};

constexpr Mark reasoning_marks[] = {
    {{"<|channel|>", "<|message|>"}, "gptoss"},
    {{"<|channel>", "<channel|>"}, "gemma4"},
    {{"[BEGIN FINAL RESPONSE]"}, "apriel"},
    {{"<seed:think>"}, "seed_oss"},
    {{"[THINK]"}, "mistral"},
    {{"<|START_THINKING|>"}, "cohere_command"},
    {{"<|inner_prefix|>"}, "apertus"},
    {{"Here is my thought process"}, "granite"},
    {{"<think>", "<answer>"}, "hunyuan_a13b"},
    {{"<think>", "<|extra_0|>"}, "hunyuan_a13b"},
    {{"<think>", "<|start_of_role|>"}, "granite"},
    {{"<think>", "<response>"}, "ernie45"},
    {{"<think>", "<｜Assistant｜>"}, "deepseek_v3"},
    {{"<think>", "<|tool_calls_section_begin|>"}, "kimi_k2"},
    {{"<think>"}, "qwen3"},
    {{"</think>"}, "deepseek_r1"},
};

// Formats by the prefix of the model's type.
struct Family {
  std::string_view type, tools, reasoning;
};
constexpr Family families[] = {
    {"apertus", "apertus", "apertus"},
    {"cohere", "cohere_command", "cohere_command"},
    {"deepseek_v32", "deepseek_v32", "deepseek_v3"},
    {"deepseek", "deepseek_v3", "deepseek_v3"},
    {"ernie", "ernie45", "ernie45"},
    {"gemma4", "gemma4", "gemma4"},
    {"gemma", "pythonic", ""},
    {"glm", "glm45", "deepseek_v3"},
    {"gpt_oss", "openai", "gptoss"},
    {"granite", "granite", "granite"},
    {"hunyuan", "hunyuan_a13b", "hunyuan_a13b"},
    {"internlm", "internlm", ""},
    {"jamba", "jamba", ""},
    {"kimi", "kimi_k2", "kimi_k2"},
    {"lfm2", "lfm2", ""},
    {"llama4", "llama4_pythonic", ""},
    {"llama", "llama3_json", ""},
    {"longcat", "longcat", "deepseek_v3"},
    {"minicpm", "minicpm5xml", "qwen3"},
    {"minimax_m2", "minimax_m2", "minimax_m2"},
    {"minimax", "minimax", "qwen3"},
    {"mistral", "mistral", "mistral"},
    {"ministral", "mistral", "mistral"},
    {"mixtral", "mistral", "mistral"},
    {"nemotron", "nemotron", "qwen3"},
    {"olmo3", "olmo3", "olmo3"},
    {"phi4", "phi4_mini_json", ""},
    {"phi3", "phi4_mini_json", ""},
    {"qwen3_5", "qwen3_coder", "qwen3"},
    {"qwen3_next", "hermes", "qwen3"},
    {"qwen", "hermes", "qwen3"},
    {"seed_oss", "seed_oss", "seed_oss"},
    {"step3p5", "step3p5", "step3p5"},
    {"step3", "step3", "step3"},
};

std::string_view marked(std::span<const Mark> rows, std::string_view source) {
  for (const Mark& row : rows)
    if (std::all_of(row.marks.begin(), row.marks.end(),
                    [&](std::string_view mark) { return source.find(mark) != std::string_view::npos; }))
      return row.format;
  return "";
}

}  // namespace

OutputFormat detect_output_format(std::string_view chat_template, std::string_view model_type) {
  OutputFormat out{std::string(marked(tool_marks, chat_template)), std::string(marked(reasoning_marks, chat_template))};
  for (const Family& family : families) {
    if (!model_type.starts_with(family.type)) continue;
    if (out.tools.empty()) out.tools = family.tools;
    if (out.reasoning.empty() && chat_template.empty()) out.reasoning = family.reasoning;
    break;
  }
  // Models without a template are prompted in ChatML, which uses Hermes' calls.
  if (chat_template.empty() && model_type.empty()) return {"hermes", "qwen3"};
  return out;
}

std::string begun_answer(std::string_view prompt, const OutputFormat& format) {
  const ReasoningFormat* reasoning = format.reasoning.empty() ? nullptr : find_reasoning_format(format.reasoning);
  if (!reasoning) return "";
  constexpr size_t longest = 256;
  Markers opens = reasoning->opens;
  if (!reasoning->prompt.empty()) opens.emplace_back(reasoning->prompt);
  const auto blank = [](std::string_view text) { return text.find_first_not_of(" \t\r\n") == std::string_view::npos; };
  for (const std::string& open : opens) {
    const size_t at = prompt.rfind(open);
    if (at == std::string_view::npos || prompt.size() - at > longest) continue;
    std::string_view rest = prompt.substr(at + open.size());
    for (const std::string& close : reasoning->closes) {  // opened and closed: reasoning is switched off
      const size_t end = rest.find(close);
      if (end != std::string_view::npos && blank(rest.substr(0, end))) rest.remove_prefix(end + close.size());
    }
    if (blank(rest)) return std::string(prompt.substr(at));
  }
  return "";
}

}  // namespace easydel::text
