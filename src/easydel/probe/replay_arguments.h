// The arguments of a recorded run, each read once: an argument that nothing has read must not be able to change a
// number.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <set>
#include <string>

#include "easydel/base/document.h"
#include "easydel/base/error.h"

namespace easydel::probe {

class Arguments {
 public:
  Arguments(const Value& config, std::string where) : config_(config), where_(std::move(where)) {}

  const Value* take(const std::string& name) {
    taken_.insert(name);
    const Value* value = config_.find(name);
    return value && !value->is_null() ? value : nullptr;
  }
  double number(const std::string& name, double otherwise) {
    const Value* value = take(name);
    if (!value) return otherwise;
    if (!value->as_double()) refuse(where_, str("config.", name, " is not a number: ", to_yaml_flow(*value)));
    return *value->as_double();
  }
  int64_t integer(const std::string& name, int64_t otherwise) { return int64_t(number(name, double(otherwise))); }
  bool flag(const std::string& name) {
    const Value* value = take(name);
    return value && value->as_bool().value_or(false);
  }
  std::string word(const std::string& name, const std::string& otherwise) {
    const Value* value = take(name);
    return value ? value->scalar : otherwise;
  }
  void ignore(std::initializer_list<const char*> names) { taken_.insert(names.begin(), names.end()); }
  [[noreturn]] void not_built(const std::string& name, const std::string& value) const {
    refuse(where_, str("config.", name, " = ", value, " is not built yet"));
  }
  // Arguments that nothing has read must be absent, null or false.
  void finish() const {
    for (const auto& [name, value] : config_.entries)
      if (!taken_.contains(name) && !value.is_null() && value.as_bool() != false) not_built(name, to_yaml_flow(value));
  }
  const std::string& where() const { return where_; }

 private:
  const Value& config_;
  std::string where_;
  std::set<std::string> taken_;
};

}  // namespace easydel::probe
