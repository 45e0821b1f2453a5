// The formats of tool calls, by name.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "easydel/text/output/tool_formats.h"

namespace easydel::text {

struct ToolFormat {
  std::string_view name;
  std::vector<std::string_view> aliases;
  Task<> (*read)(ReadContext& context);  // the whole answer
};

std::span<const ToolFormat> tool_formats();
const ToolFormat* find_tool_format(std::string_view name);  // by name or alias; '-' equals '_'; nullptr: unknown

}  // namespace easydel::text
