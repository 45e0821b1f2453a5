// Checks of the free-form parts of requests: messages, items, tools. What is wrong is added to the problems, with its
// path.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "easydel/base/document.h"
#include "easydel/config/codec.h"
#include "easydel/config/problems.h"

namespace easydel::server {

struct RequestChecker {
  config::Problems& problems;

  void wrong(const std::string& path, std::string what, std::string remedy = "") const {
    problems.add(path, Place{}, std::move(what), std::move(remedy));
  }
  bool is_map(const Value& value, const std::string& path) const {
    if (!value.is_map()) wrong(path, config::shown(value) + " is not an object");
    return value.is_map();
  }
  // The text of a member; nothing and a problem if it is not one. An absent member is a problem if it is needed.
  std::optional<std::string> text(const Value& map, std::string_view name, const std::string& path, bool needed) const;
  // The member if it is an object; null and a problem otherwise. An absent member is a problem if it is needed.
  const Value* object(const Value& map, std::string_view name, const std::string& path, bool needed) const;
};

// The member's text; empty if there is none.
std::string text_of(const Value& map, std::string_view name);
// The member, unless it is absent or null.
const Value* member(const Value& map, std::string_view name);

}  // namespace easydel::server
