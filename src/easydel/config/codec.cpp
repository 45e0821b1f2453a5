#include "easydel/config/codec.h"

#include "easydel/base/error.h"

namespace easydel::config {

std::string shown(const Value& value) {
  switch (value.kind) {
    case Value::Kind::null:
      return "null";
    case Value::Kind::list:
      return "a list";
    case Value::Kind::map:
      return "a map";
    default:
      break;
  }
  const std::string& text = value.scalar;
  if (text.size() <= 60) return "'" + text + "'";
  size_t end = 60;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;  // within a UTF-8 character
  return "'" + text.substr(0, end) + "...'";
}

namespace detail {
namespace {

// A number or a boolean in quotes is a string; users usually mean it without quotes.
std::string quotes_remedy(const Value& value, const At& at) {
  Value bare = value;
  bare.kind = Value::Kind::plain;
  const bool meant = value.is_text() && (bare.as_double() || bare.as_bool());
  return meant ? at.remedy + "; the quotes make it a string" : "";
}

}  // namespace

bool read_bool(const Value& value, bool& out, const At& at) {
  if (const auto flag = value.as_bool()) return out = *flag, true;
  const std::string word = value.as_string() ? canonical(*value.as_string()) : "";
  std::string remedy = quotes_remedy(value, at);
  if (word == "yes" || word == "on" || word == "y")
    remedy = "'" + value.scalar + "' is a string in YAML 1.2; write true";
  if (word == "no" || word == "off" || word == "n")
    remedy = "'" + value.scalar + "' is a string in YAML 1.2; write false";
  return at.wrong(value, shown(value) + " is not true or false", remedy);
}

bool read_integer(const Value& value, int64_t& out, int64_t low, int64_t high, const At& at) {
  const auto number = value.as_int();
  if (!number) return at.wrong(value, shown(value) + " is not an integer", quotes_remedy(value, at));
  if (*number < low || *number > high) return at.wrong(value, value.scalar + " is out of range");
  return out = *number, true;
}

bool read_double(const Value& value, double& out, const At& at) {
  const auto number = value.as_double();
  if (!number) return at.wrong(value, shown(value) + " is not a number", quotes_remedy(value, at));
  return out = *number, true;
}

bool read_text(const Value& value, std::string& out, const At& at) {
  if (value.kind != Value::Kind::plain && value.kind != Value::Kind::text)
    return at.wrong(value, shown(value) + " is not a string");
  if (value.as_bool())
    return at.wrong(value, value.scalar + " is not a string",
                    at.remedy + "; write \"" + value.scalar + "\" to give the word as a string");
  return out = value.scalar, true;
}

int read_choice(const Value& value, std::span<const PlainChoice> choices, const At& at) {
  if (value.is_list() || value.is_map() || value.is_null())
    return at.wrong(value, shown(value) + " is not a string"), -1;
  const std::string word = canonical(value.scalar);
  std::vector<std::string> names, built;
  for (size_t i = 0; i < choices.size(); ++i) {
    const PlainChoice& choice = choices[i];
    names.emplace_back(choice.name);
    if (choice.built) built.emplace_back(choice.name);
    bool same = canonical(choice.name) == word;
    for (std::string_view alias : choice.aliases) {
      if (alias.empty()) continue;
      names.emplace_back(alias);
      same |= canonical(alias) == word;
    }
    if (same && choice.built) return int(i);
    if (same) {
      built.clear();
      for (const PlainChoice& other : choices)
        if (other.built) built.emplace_back(other.name);
      return at.wrong(value, shown(value) + " is not built yet", "built: " + join(built, ", ")), -1;
    }
  }
  const std::string near = nearest(value.scalar, names);
  return at.wrong(value, "unknown value " + shown(value),
                  near.empty() ? "" : "did you mean '" + near + "'? " + at.remedy),
         -1;
}

std::string expects_choice(std::span<const PlainChoice> choices) {
  std::string out;
  for (const PlainChoice& choice : choices)
    if (choice.built) out += (out.empty() ? "one of: " : ", ") + std::string(choice.name);
  return out;
}

Value schema_choice(std::span<const PlainChoice> choices) {
  Value words = Value::list();
  for (const PlainChoice& choice : choices) {
    if (!choice.built) continue;
    words.items.push_back(Value::text(std::string(choice.name)));
    for (std::string_view alias : choice.aliases)
      if (!alias.empty()) words.items.push_back(Value::text(std::string(alias)));
  }
  Value out = Value::map();
  out.set("enum", words);
  return out;
}

Value schema_type(std::string_view type) {
  Value out = Value::map();
  out.set("type", Value::text(std::string(type)));
  return out;
}

Value schema_any_of(std::vector<Value> schemas) {
  Value out = Value::map(), list = Value::list();
  list.items = std::move(schemas);
  out.set("anyOf", list);
  return out;
}

Value schema_list(Value items, std::optional<size_t> size) {
  Value out = schema_type("array");
  out.set("items", std::move(items));
  if (size) out.set("minItems", Value::integer(int64_t(*size)));
  if (size) out.set("maxItems", Value::integer(int64_t(*size)));
  return out;
}

Value schema_map(Value values) {
  Value out = schema_type("object");
  out.set("additionalProperties", std::move(values));
  return out;
}

}  // namespace detail
}  // namespace easydel::config
