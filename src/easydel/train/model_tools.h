// Tools that a model may call in an episode, and that we have ourselves. No torch.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "easydel/base/document.h"

namespace easydel::train {

struct ModelTool {
  std::string_view name;
  Value (*schema)();  // as a request to a chat server has it: {type: function, function: {...}}
  // What the model is told. A call that fails is an answer, too: "error: ...".
  std::string (*call)(const Value& arguments);
};

const ModelTool* find_model_tool(std::string_view name);  // null: there is none
std::vector<std::string> model_tool_names();

// The value of an arithmetic expression: + - * / % ^ (or **), parentheses, pi, e, and the functions abs, ceil, cos,
// exp, floor, log, log10, max, min, round, sin, sqrt, tan. A text that begins with "error: " if it has none.
std::string calculated(std::string_view expression);

}  // namespace easydel::train
