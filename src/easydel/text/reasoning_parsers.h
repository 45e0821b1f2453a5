// Which formats of reasoning there are, by name: the part of an answer that comes before it.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "easydel/text/tool_formats.h"

namespace easydel::text {

struct ReasoningFormat {
  std::string_view name;
  std::vector<std::string_view> aliases;
  Markers opens = {}, closes = {};
  // Reasoning begins without a marker: always, only where it was asked for, or never.
  enum class Start : uint8_t { implicit, asked, marked } start = Start::marked;
  bool stays_in_content = false;  // with its markers; an opening one is added
  bool harmony = false;           // channels, which read_harmony tells apart
  Markers noise = {};             // markers around the content
  std::string_view prompt = {};   // what a prompt may end with, beside `opens`, that is part of the reasoning
};

std::span<const ReasoningFormat> reasoning_formats();
const ReasoningFormat* find_reasoning_format(std::string_view name);

Task<> read_reasoning(ReadContext& context, const ReasoningFormat& format);

}  // namespace easydel::text
