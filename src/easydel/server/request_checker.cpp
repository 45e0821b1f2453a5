#include "easydel/server/request_checker.h"

namespace easydel::server {

const Value* member(const Value& map, std::string_view name) {
  const Value* const value = map.is_map() ? map.find(name) : nullptr;
  return value && !value->is_null() ? value : nullptr;
}

std::string text_of(const Value& map, std::string_view name) {
  const Value* const value = member(map, name);
  return value && value->is_text() ? value->scalar : "";
}

std::optional<std::string> RequestChecker::text(const Value& map, std::string_view name, const std::string& path,
                                                bool needed) const {
  const Value* const value = member(map, name);
  if (value && value->is_text()) return value->scalar;
  const std::string at = config::join_path(path, name);
  if (value)
    wrong(at, config::shown(*value) + " is not a string");
  else if (needed)
    wrong(at, "is required");
  return std::nullopt;
}

const Value* RequestChecker::object(const Value& map, std::string_view name, const std::string& path,
                                    bool needed) const {
  const Value* const value = member(map, name);
  const std::string at = config::join_path(path, name);
  if (!value) return needed ? wrong(at, "is required") : void(), nullptr;
  return is_map(*value, at) ? value : nullptr;
}

}  // namespace easydel::server
