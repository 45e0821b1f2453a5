// Which tools an answer may call, and whether it has to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "easydel/base/document.h"
#include "easydel/config/problems.h"

namespace easydel::server {

constexpr size_t max_tools = 1024;  // of a request

struct ToolChoice {
  enum class Mode : uint8_t { none, automatic, required } mode = Mode::automatic;
  std::vector<std::string> names = {};  // the only tools that may be called; empty: all of them
};

// Reads none, auto, required, {"type": "function", "function": {"name": ...}} or {"type": "allowed_tools",
// "allowed_tools": {"mode": ..., "tools": [...]}}; OpenAI's newer routes leave the inner objects out. A null is auto if
// there are tools. Adds what is wrong to the problems.
ToolChoice read_tool_choice(const Value& choice, const Value& tools, const std::string& path,
                            config::Problems& problems);

// The tools of a request, each as {"type": "function", "function": {"name": ...}}, of which the answer may call those
// that `choice` allows.
std::vector<const Value*> allowed_tools(const Value& tools, const ToolChoice& choice);

}  // namespace easydel::server
