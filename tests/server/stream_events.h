// Streams of events and JSON answers as a client reads them.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "easydel/base/document.h"

namespace easydel::test {

struct StreamEvent {
  std::string name, data;  // name: empty if the event has none
};

inline std::vector<StreamEvent> events_of(std::string_view stream) {
  std::vector<StreamEvent> out;
  while (!stream.empty()) {
    const size_t end = std::min(stream.find("\n\n"), stream.size());
    std::string_view block = stream.substr(0, end);
    stream.remove_prefix(std::min(end + 2, stream.size()));
    StreamEvent event;
    while (!block.empty()) {
      const size_t line_end = std::min(block.find('\n'), block.size());
      const std::string_view line = block.substr(0, line_end);
      block.remove_prefix(std::min(line_end + 1, block.size()));
      if (line.starts_with("event: ")) event.name = line.substr(7);
      if (line.starts_with("data: ")) event.data += line.substr(6);
    }
    out.push_back(std::move(event));
  }
  return out;
}

// The member at a path of names and indices: its text, or its JSON if it is not a string; "(none)".
inline std::string member_of(const std::string& json, std::initializer_list<std::string_view> path) {
  Value at = parse_json(json);
  for (const std::string_view step : path) {
    if (at.is_list()) {
      const size_t index = std::stoul(std::string(step));
      if (index >= at.items.size()) return "(none)";
      at = Value(at.items[index]);
    } else {
      const Value* const next = at.is_map() ? at.find(step) : nullptr;
      if (!next) return "(none)";
      at = Value(*next);
    }
  }
  return at.is_text() ? at.scalar : to_json(at);
}

}  // namespace easydel::test
