// The formats of reasoning, and the reader that they share.
#include "easydel/text/output/reasoning_parsers.h"

#include <algorithm>

namespace easydel::text {
namespace {

using Start = ReasoningFormat::Start;
const Markers think{"<think>"}, end_think{"</think>"};

const ReasoningFormat reasoning_formats_by_name[] = {
    {.name = "apertus", .aliases = {}, .opens = {"<|inner_prefix|>"}, .closes = {"<|inner_suffix|>"}},
    {.name = "apriel",
     .aliases = {},
     .closes = {"[BEGIN FINAL RESPONSE]"},
     .start = Start::implicit,
     .noise = {"[END FINAL RESPONSE]"},
     .prompt = "Here are my reasoning steps:"},
    {.name = "cohere_command",
     .aliases = {"command_r7b"},
     .opens = {"<|START_THINKING|>"},
     .closes = {"<|END_THINKING|>"},
     .noise = {"<|START_RESPONSE|>", "<|END_RESPONSE|>", "<|START_TEXT|>", "<|END_TEXT|>"}},
    {.name = "deepseek_r1", .aliases = {}, .opens = think, .closes = end_think, .start = Start::implicit},
    {.name = "deepseek_v3", .aliases = {"glm45", "holo2"}, .opens = think, .closes = end_think, .start = Start::asked},
    {.name = "ernie45",
     .aliases = {},
     .opens = think,
     .closes = end_think,
     .start = Start::implicit,
     .noise = {"<response>\n", "<response>", "\n</response>", "</response>"}},
    {.name = "gemma4",
     .aliases = {},
     .opens = {"<|channel>thought\n", "<|channel>thought"},
     .closes = {"<channel|>"},
     .noise = {"<turn|>"}},
    {.name = "gptoss", .aliases = {"openai_gptoss", "openai", "gpt_oss"}, .harmony = true},
    {.name = "granite",
     .aliases = {},
     .opens = {"Here is my thought process:", "Here's my thought process:", "<think>"},
     .closes = {"Here is my response:", "Here's my response:", "</think>"},
     .noise = {"<response>\n", "<response>", "\n</response>", "</response>"}},
    {.name = "hunyuan_a13b",
     .aliases = {},
     .opens = think,
     .closes = end_think,
     .noise = {"<answer>\n", "<answer>", "\n</answer>", "</answer>"}},
    {.name = "identity", .aliases = {"none", "passthrough"}},
    {.name = "kimi_k2",
     .aliases = {},
     .opens = think,
     .closes = end_think,
     .calls = {"<|tool_calls_section_begin|>", "<|tool_call_section_begin|>"},
     .start = Start::asked},
    {.name = "minimax_m2", .aliases = {}, .opens = think, .closes = end_think, .start = Start::implicit},
    {.name = "minimax_m2_append_think", .aliases = {}, .opens = think, .closes = end_think, .stays_in_content = true},
    {.name = "mistral", .aliases = {}, .opens = {"[THINK]"}, .closes = {"[/THINK]"}},
    {.name = "olmo3", .aliases = {}, .opens = think, .closes = end_think, .start = Start::implicit},
    {.name = "qwen3", .aliases = {"qwen3_reasoning"}, .opens = think, .closes = end_think, .start = Start::asked},
    {.name = "seed_oss",
     .aliases = {},
     .opens = {"<seed:think>"},
     .closes = {"</seed:think>"},
     .start = Start::implicit},
    {.name = "step3", .aliases = {}, .opens = think, .closes = end_think, .start = Start::implicit},
    {.name = "step3p5", .aliases = {}, .opens = think, .closes = end_think, .start = Start::implicit},
};

}  // namespace

std::span<const ReasoningFormat> reasoning_formats() { return reasoning_formats_by_name; }

const ReasoningFormat* find_reasoning_format(std::string_view name) {
  std::string spelled(name);
  std::replace(spelled.begin(), spelled.end(), '-', '_');
  for (const ReasoningFormat& format : reasoning_formats_by_name)
    if (format.name == spelled ||
        std::find(format.aliases.begin(), format.aliases.end(), spelled) != format.aliases.end())
      return &format;
  return nullptr;
}

Task<> read_reasoning(ReadContext& context, const ReasoningFormat& format) {
  using Thinking = OutputOptions::Thinking;
  Incoming& in = context.in;
  context.noise.insert(context.noise.end(), format.noise.begin(), format.noise.end());
  if (format.stays_in_content) {
    context.sink.content("<think>");
    co_return;
  }
  if (format.closes.empty()) co_return;
  std::string space;
  while (true) {
    const int c = co_await in.peek();
    if (!is_blank(c)) break;
    space += char(c);
    in.take(1);
  }
  const size_t open = co_await next_is(in, format.opens);
  const Thinking asked = context.options.thinking;
  const bool implicit = asked != Thinking::off &&
                        (format.start == Start::implicit || (format.start == Start::asked && asked == Thinking::on));
  if (open != none_index) {
    in.take(format.opens[open].size());
  } else if (!implicit) {
    context.sink.content(space);
    if (format.closes.size() == 1) {
      context.late_reasoning_end = format.closes[0];
      context.sink.content_may_be_reasoning = true;
    }
    co_return;
  }
  const Take take = [&context](std::string_view piece) { context.sink.reasoning(piece); };
  Markers ends = format.closes;
  ends.insert(ends.end(), format.calls.begin(), format.calls.end());
  const size_t end = co_await read_until(in, ends, take);
  if (end == none_index) co_return;
  if (end < format.closes.size()) in.take(ends[end].size());
  context.sink.end_reasoning();
}

}  // namespace easydel::text
