// The formats of reasoning, by name. Reasoning is the part that precedes the answer.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "easydel/text/output/tool_formats.h"

namespace easydel::text {

struct ReasoningFormat {
  std::string_view name;
  std::vector<std::string_view> aliases;
  Markers opens = {}, closes = {};
  Markers calls = {};  // markers of tool calls, which also end reasoning that is not closed
  // Whether reasoning begins without a marker: always, only if it was requested, or never.
  enum class Start : uint8_t { implicit, asked, marked } start = Start::marked;
  bool stays_in_content = false;  // reasoning and its markers stay in the content; a missing opening marker is added
  bool harmony = false;           // uses channels, which read_harmony separates
  Markers noise = {};             // markers around the content
  std::string_view prompt = {};   // text after `opens` at the end of a prompt that belongs to the reasoning
};

std::span<const ReasoningFormat> reasoning_formats();
const ReasoningFormat* find_reasoning_format(std::string_view name);

Task<> read_reasoning(ReadContext& context, const ReasoningFormat& format);

}  // namespace easydel::text
