#include "easydel/config/tables.h"

#include <algorithm>
#include <cmath>

namespace easydel::config {

namespace detail {
namespace {

std::string number_text(double number) {
  return std::trunc(number) == number && std::abs(number) < 1e15 ? std::to_string(int64_t(number))
                                                                 : Value::number(number).scalar;
}

}  // namespace

std::string expects_with(const std::string& expects, const Limits& limits) {
  if (!limits.has_low) return expects;
  // "an integer from 1 to 256, or null": the limits are inserted after the noun.
  const size_t noun = std::min(expects.find("an integer"), expects.find("a number"));
  size_t end = noun == std::string::npos ? expects.size() : noun + (expects[noun + 1] == 'n' ? 10 : 8);
  const std::string range = limits.has_high ? " from " + number_text(limits.low) + " to " + number_text(limits.high)
                            : limits.open   ? " above " + number_text(limits.low)
                                            : " of at least " + number_text(limits.low);
  return expects.substr(0, end) + range + expects.substr(end);
}

Value schema_with(Value schema, const Limits& limits) {
  if (Value* any = schema.find("anyOf")) {
    for (Value& one : any->items) one = schema_with(std::move(one), limits);
    return schema;
  }
  if (Value* items = schema.find("items")) {
    *items = schema_with(std::move(*items), limits);
    return schema;
  }
  const Value* type = schema.find("type");
  if (!type || (type->scalar != "integer" && type->scalar != "number")) return schema;
  const auto limit = [](double number) { return Value{.kind = Value::Kind::plain, .scalar = number_text(number)}; };
  if (limits.has_low) schema.set(limits.open ? "exclusiveMinimum" : "minimum", limit(limits.low));
  if (limits.has_high) schema.set("maximum", limit(limits.high));
  return schema;
}

bool outside(double value, const Limits& limits) {
  if ((limits.has_low || limits.has_high) && !std::isfinite(value)) return true;
  if (limits.has_low && !(limits.open ? value > limits.low : value >= limits.low)) return true;
  return limits.has_high && !(value <= limits.high);
}

}  // namespace detail

Key key_of(const Field& row, void* defaults) {
  const MemberType& type = *row.type;
  const Attributes& attributes = row.attributes;
  Key key{.name = std::string(row.name), .doc = std::string(row.doc)};
  for (std::string_view name : attributes.aliases)
    if (!name.empty()) key.aliases.emplace_back(name);
  for (std::string_view name : attributes.deprecated)
    if (!name.empty()) key.deprecated.emplace_back(name);
  key.no_effect = attributes.no_effect, key.not_built = attributes.not_built, key.required = attributes.required;
  key.expects = detail::expects_with(type.expects(), attributes.limits);
  key.member = row.member;
  key.default_value = type.write(row.member(defaults));
  key.write = [&row](const void* object) { return row.type->write(row.member(const_cast<void*>(object))); };
  key.shape = type.shape;
  const bool plain = type.shape == Key::Shape::value;
  if (plain) key.schema = detail::schema_with(type.schema(), attributes.limits);
  if (!plain) key.section = type.section;
  if (type.is_section)
    key.settle = [&row](void* object, const std::string& path, Problems& problems) {
      read_section(*row.type->section(), {}, row.member(object), path, problems);
    };
  key.read = [&row, plain, expected = "expected " + key.expects](const Value& value, void* object,
                                                                 const std::string& path, Problems& problems) {
    const MemberType& type = *row.type;
    void* const member = row.member(object);
    // The object's own default: that of a struct may have been replaced, for example by a training method's.
    const std::string remedy = plain ? expected + " (default " + to_yaml_flow(type.write(member)) + ")" : expected;
    if (value.is_null() && type.empty_means_default)
      return problems.note(path, "is empty; its default " + to_yaml_flow(type.write(member)) + " is used");
    if (!type.read(value, member, {path, problems, remedy})) return;
    const Limits& limits = row.attributes.limits;
    if ((limits.has_low || limits.has_high) && type.outside(member, limits))
      problems.add(path, value.place, to_yaml_flow(value) + " is out of range", remedy);
  };
  return key;
}

}  // namespace easydel::config
