#include "json_check.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <regex>

namespace easydel::test {
namespace {

double double_of(const Value& value) { return std::strtod(value.scalar.c_str(), nullptr); }

bool is_number(const Value& value) { return value.kind == Value::Kind::plain && !value.as_bool(); }

bool equal(const Value& a, const Value& b) {
  if (is_number(a) && is_number(b)) return double_of(a) == double_of(b);
  if (a.kind != b.kind) return false;
  if (a.is_list()) return std::equal(a.items.begin(), a.items.end(), b.items.begin(), b.items.end(), equal);
  if (!a.is_map()) return a.scalar == b.scalar;
  if (a.entries.size() != b.entries.size()) return false;
  for (const auto& [name, item] : a.entries)
    if (!b.find(name) || !equal(item, *b.find(name))) return false;
  return true;
}

bool has_type(const std::string& type, const Value& value) {
  if (type == "null") return value.is_null();
  if (type == "boolean") return value.kind == Value::Kind::plain && value.as_bool().has_value();
  if (type == "string") return value.is_text();
  if (type == "array") return value.is_list();
  if (type == "object") return value.is_map();
  if (!is_number(value)) return false;
  const double number = double_of(value);
  return type == "number" || number == std::floor(number);
}

size_t length_of(const std::string& text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

// Whole numbers of up to 64 digits exactly: digit by digit.
bool is_multiple(const Value& value, const Value& limit) {
  const auto divisor = limit.as_int();
  const std::string_view digits = std::string_view(value.scalar).substr(value.scalar.starts_with('-') ? 1 : 0);
  const bool whole = digits.find_first_not_of("0123456789") == std::string_view::npos;
  if (!divisor || *divisor <= 0 || *divisor > 1000000 || !whole)
    return std::fmod(*value.as_double(), *limit.as_double()) == 0;
  int64_t rest = 0;
  for (const char digit : digits) rest = (rest * 10 + (digit - '0')) % *divisor;
  return rest == 0;
}

}  // namespace

bool is_valid(const Value& schema, const Value& value) {
  if (schema.kind == Value::Kind::plain) return *schema.as_bool();
  const auto number = [](const Value& limit) { return double_of(limit); };
  for (const auto& [keyword, limit] : schema.entries) {
    bool good = true;
    const auto each = [&](auto&& holds) { return std::all_of(limit.items.begin(), limit.items.end(), holds); };
    const auto some = [&](auto&& holds) { return std::any_of(limit.items.begin(), limit.items.end(), holds); };
    const auto accepts = [&](const Value& part) { return is_valid(part, value); };
    if (keyword == "type")
      good = limit.is_list() ? some([&](const Value& type) { return has_type(type.scalar, value); })
                             : has_type(limit.scalar, value);
    else if (keyword == "enum")
      good = some([&](const Value& one) { return equal(one, value); });
    else if (keyword == "const")
      good = equal(limit, value);
    else if (keyword == "anyOf")
      good = some(accepts);
    else if (keyword == "allOf")
      good = each(accepts);
    else if (keyword == "minimum" && is_number(value))
      good = number(value) >= number(limit);
    else if (keyword == "maximum" && is_number(value))
      good = number(value) <= number(limit);
    else if (keyword == "exclusiveMinimum" && is_number(value))
      good = number(value) > number(limit);
    else if (keyword == "multipleOf" && is_number(value))
      good = is_multiple(value, limit);
    else if (keyword == "minLength" && value.is_text())
      good = length_of(value.scalar) >= static_cast<size_t>(number(limit));
    else if (keyword == "maxLength" && value.is_text())
      good = length_of(value.scalar) <= static_cast<size_t>(number(limit));
    else if (keyword == "pattern" && value.is_text())
      good = std::regex_search(value.scalar, std::regex(limit.scalar));
    else if (keyword == "minItems" && value.is_list())
      good = value.items.size() >= static_cast<size_t>(number(limit));
    else if (keyword == "maxItems" && value.is_list())
      good = value.items.size() <= static_cast<size_t>(number(limit));
    else if (keyword == "prefixItems" && value.is_list())
      for (size_t i = 0; i < std::min(limit.items.size(), value.items.size()); ++i)
        good = good && is_valid(limit.items[i], value.items[i]);
    else if (keyword == "items" && value.is_list())
      for (size_t i = schema.find("prefixItems") ? schema.find("prefixItems")->items.size() : 0; i < value.items.size();
           ++i)
        good = good && is_valid(limit, value.items[i]);
    else if (keyword == "required" && value.is_map())
      good = each([&](const Value& name) { return value.find(name.scalar) != nullptr; });
    else if (keyword == "maxProperties" && value.is_map())
      good = value.entries.size() <= static_cast<size_t>(number(limit));
    else if (keyword == "properties" && value.is_map())
      for (const auto& [name, item] : value.entries)
        good = good && (!limit.find(name) || is_valid(*limit.find(name), item));
    else if (keyword == "additionalProperties" && value.is_map())
      for (const auto& [name, item] : value.entries)
        good = good && ((schema.find("properties") && schema.find("properties")->find(name)) || is_valid(limit, item));
    if (!good) return false;
  }
  return true;
}

}  // namespace easydel::test
