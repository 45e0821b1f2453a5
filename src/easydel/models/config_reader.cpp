#include "easydel/models/config_reader.h"

#include <cmath>
#include <limits>

namespace easydel::models {

const Value* ConfigReader::find(std::string_view key) const {
  const Value* value = config_.is_map() ? config_.find(key) : nullptr;
  return value && !value->is_null() ? value : nullptr;
}

bool ConfigReader::has(std::string_view key) const { return config_.is_map() && config_.find(key) != nullptr; }

void ConfigReader::refuse_key(std::string_view key, const std::string& what, const std::string& remedy) const {
  refuse(where_.below(key), what, remedy);
}

namespace {

std::string shown(const Value& value) { return to_json(value); }

}  // namespace

std::optional<int64_t> ConfigReader::integer(std::string_view key) const {
  const Value* value = find(key);
  if (!value) return std::nullopt;
  const auto found = value->as_int();
  if (!found) refuse_key(key, shown(*value) + " is not an integer");
  constexpr int64_t max_value = std::numeric_limits<int32_t>::max();  // so that a product of two fits into int64
  if (*found > max_value || *found < -max_value) refuse_key(key, str(*found, " is beyond ", max_value));
  return found;
}

int64_t ConfigReader::integer(std::string_view key, int64_t otherwise) const {
  return integer(key).value_or(otherwise);
}

double ConfigReader::number(std::string_view key, double otherwise) const {
  const Value* value = find(key);
  if (!value) return otherwise;
  if (const auto found = value->as_double(); found && !std::isnan(*found)) return *found;
  refuse_key(key, shown(*value) + " is not a number");
}

bool ConfigReader::boolean(std::string_view key, bool otherwise) const {
  const Value* value = find(key);
  if (!value) return has(key) ? false : otherwise;
  if (const auto found = value->as_bool()) return *found;
  refuse_key(key, shown(*value) + " is neither true nor false");
}

std::string ConfigReader::text(std::string_view key, std::string_view otherwise) const {
  const Value* value = find(key);
  if (!value) return std::string(otherwise);
  if (const auto found = value->as_string()) return *found;
  refuse_key(key, shown(*value) + " is not a string");
}

std::vector<std::string> ConfigReader::texts(std::string_view key) const {
  std::vector<std::string> out;
  const Value* value = find(key);
  if (!value) return out;
  if (!value->is_list()) refuse_key(key, shown(*value) + " is not a list");
  for (const Value& item : value->items) {
    const auto found = item.as_string();
    if (!found) refuse_key(key, shown(item) + " is not a string");
    out.push_back(*found);
  }
  return out;
}

void ConfigReader::positive(std::string_view key, int64_t value) const {
  if (value < 1) refuse_key(key, str(value, " is not positive"));
}

std::vector<int64_t> ConfigReader::integers(std::string_view key) const {
  std::vector<int64_t> out;
  const Value* value = find(key);
  if (!value) return out;
  if (!value->is_list()) refuse_key(key, shown(*value) + " is not a list");
  for (const Value& item : value->items) {
    // A boolean counts as 0 or 1.
    const auto flag = item.as_bool();
    const auto found = flag ? std::optional<int64_t>(*flag) : item.as_int();
    if (!found) refuse_key(key, shown(item) + " is not an integer");
    out.push_back(*found);
  }
  return out;
}

}  // namespace easydel::models
