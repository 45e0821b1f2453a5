#include "easydel/server/tool_choice.h"

#include <algorithm>

#include "easydel/base/error.h"
#include "easydel/server/request_checker.h"

namespace easydel::server {
namespace {

std::string name_of_tool(const Value& tool) {
  const Value* const function = member(tool, "function");
  return text_of(function ? *function : tool, "name");
}

struct ChoiceReader {
  const RequestChecker check;
  const Value& tools;
  ToolChoice out = {};

  bool has_tools() const { return tools.is_list() && !tools.items.empty(); }

  void read_mode(const Value& mode, const std::string& path) {
    if (mode.scalar == "none")
      out.mode = ToolChoice::Mode::none;
    else if (mode.scalar == "required")
      out.mode = ToolChoice::Mode::required;
    else if (mode.scalar != "auto")
      check.wrong(path, "'" + mode.scalar + "' is not none, auto, required or a function");
    if (out.mode == ToolChoice::Mode::required && !has_tools())
      check.wrong(path, "a call is required, but there are no tools");
  }

  void read_name(const Value& function, const std::string& path) {
    const std::string name = name_of_tool(function);
    const auto is_it = [&](const Value& tool) { return name_of_tool(tool) == name; };
    if (name.empty()) return check.wrong(path, "has no name of a function");
    if (!has_tools() || std::ranges::none_of(tools.items, is_it))
      return check.wrong(path, "'" + name + "' is not one of the tools");
    out.names.push_back(name);
  }

  void read_allowed(const Value& choice, const std::string& path) {
    const Value* const inner = member(choice, "allowed_tools");
    const Value& allowed = inner && inner->is_map() ? *inner : choice;
    const std::string at = &allowed == &choice ? path : config::join_path(path, "allowed_tools");
    const Value* const names = member(allowed, "tools");
    if (!names || !names->is_list() || names->items.empty())
      return check.wrong(config::join_path(at, "tools"), "is not a list of tools");
    for (size_t i = 0; i < names->items.size(); ++i)
      read_name(names->items[i], str(config::join_path(at, "tools"), "[", i, "]"));
    const std::string mode_path = config::join_path(at, "mode");
    const Value* const mode = member(allowed, "mode");
    if (!mode) return;
    if (mode->is_text() && mode->scalar != "none")
      read_mode(*mode, mode_path);
    else
      check.wrong(mode_path, config::shown(*mode) + " is not auto or required");
  }
};

}  // namespace

ToolChoice read_tool_choice(const Value& choice, const Value& tools, const std::string& path,
                            config::Problems& problems) {
  ChoiceReader reader{.check = {problems}, .tools = tools};
  if (choice.is_null()) {
    if (!reader.has_tools()) reader.out.mode = ToolChoice::Mode::none;
  } else if (choice.is_text()) {
    reader.read_mode(choice, path);
  } else if (choice.is_map() && (text_of(choice, "type") == "function" || member(choice, "function"))) {
    reader.out.mode = ToolChoice::Mode::required;
    reader.read_name(choice, path);
  } else if (text_of(choice, "type") == "allowed_tools") {
    reader.read_allowed(choice, path);
  } else {
    reader.check.wrong(path, "is not none, auto, required, a function or allowed_tools");
  }
  return reader.out;
}

std::vector<const Value*> allowed_tools(const Value& tools, const ToolChoice& choice) {
  std::vector<const Value*> out;
  if (choice.mode == ToolChoice::Mode::none || !tools.is_list()) return out;
  for (const Value& tool : tools.items) {
    const std::string name = name_of_tool(tool);
    if (choice.names.empty() || std::ranges::find(choice.names, name) != choice.names.end()) out.push_back(&tool);
  }
  return out;
}

}  // namespace easydel::server
