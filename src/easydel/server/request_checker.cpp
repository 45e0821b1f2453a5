#include "easydel/server/request_checker.h"

#include "easydel/base/error.h"

namespace easydel::server {

const Value* member(const Value& map, std::string_view name) {
  const Value* const value = map.is_map() ? map.find(name) : nullptr;
  return value && !value->is_null() ? value : nullptr;
}

std::string text_of(const Value& map, std::string_view name) {
  const Value* const value = member(map, name);
  return value && value->is_text() ? value->scalar : "";
}

std::string BodyPath::text() const {
  if (!parent_) return std::string(step_);
  const std::string before = parent_->text();
  return step_.data() ? config::join_path(before, step_) : str(before, "[", item_, "]");
}

const std::string* RequestChecker::text(const Value& map, std::string_view name, const BodyPath& path,
                                        bool needed) const {
  const Value* const value = member(map, name);
  if (value && value->is_text()) return &value->scalar;
  if (value)
    wrong(path / name, config::shown(*value) + " is not a string");
  else if (needed)
    wrong(path / name, "is required");
  return nullptr;
}

const Value* RequestChecker::object(const Value& map, std::string_view name, const BodyPath& path, bool needed) const {
  const Value* const value = member(map, name);
  if (!value) return needed ? wrong(path / name, "is required") : void(), nullptr;
  return is_map(*value, path / name) ? value : nullptr;
}

}  // namespace easydel::server
