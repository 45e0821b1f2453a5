#include "easydel/text/constrain/schema_document.h"

#include <algorithm>
#include <array>

#include "easydel/base/error.h"
#include "easydel/text/constrain/json_numbers.h"
#include "easydel/text/constrain/limits.h"

namespace easydel::text::constrain {
namespace {

enum class Keyword : uint8_t {
  passed_over,
  schema,
  schema_or_list,
  schemas_by_name,
  schemas,
  count,
  number,
  multiple,
  type,
  values,
  value,
  names,
  text,
  must_be_false
};

constexpr std::array<std::pair<std::string_view, Keyword>, 46> keywords = {{
    {"title", Keyword::passed_over},
    {"description", Keyword::passed_over},
    {"default", Keyword::passed_over},
    {"example", Keyword::passed_over},
    {"examples", Keyword::passed_over},
    {"deprecated", Keyword::passed_over},
    {"readOnly", Keyword::passed_over},
    {"writeOnly", Keyword::passed_over},
    {"contentEncoding", Keyword::passed_over},
    {"contentMediaType", Keyword::passed_over},
    {"$comment", Keyword::passed_over},
    {"$schema", Keyword::passed_over},
    {"$defs", Keyword::schemas_by_name},
    {"definitions", Keyword::schemas_by_name},
    {"properties", Keyword::schemas_by_name},
    {"patternProperties", Keyword::schemas_by_name},
    {"additionalProperties", Keyword::schema},
    {"propertyNames", Keyword::schema},
    {"additionalItems", Keyword::schema},
    {"items", Keyword::schema_or_list},
    {"prefixItems", Keyword::schemas},
    {"anyOf", Keyword::schemas},
    {"oneOf", Keyword::schemas},
    {"allOf", Keyword::schemas},
    {"minLength", Keyword::count},
    {"maxLength", Keyword::count},
    {"minItems", Keyword::count},
    {"maxItems", Keyword::count},
    {"minProperties", Keyword::count},
    {"maxProperties", Keyword::count},
    {"minimum", Keyword::number},
    {"maximum", Keyword::number},
    {"exclusiveMinimum", Keyword::number},
    {"exclusiveMaximum", Keyword::number},
    {"multipleOf", Keyword::multiple},
    {"type", Keyword::type},
    {"enum", Keyword::values},
    {"const", Keyword::value},
    {"required", Keyword::names},
    {"pattern", Keyword::text},
    {"format", Keyword::text},
    {"$ref", Keyword::text},
    {"uniqueItems", Keyword::must_be_false},
    {"nullable", Keyword::must_be_false},
    {"$id", Keyword::text},
    {"id", Keyword::text},
}};

constexpr std::array<std::string_view, 7> types = {"null", "boolean", "integer", "number", "string", "array", "object"};

bool is_schema(const Value& value) { return value.is_map() || value.as_bool().has_value(); }

std::string escaped(std::string_view key) {
  std::string out;
  for (const char c : key) out += c == '~' ? std::string("~0") : c == '/' ? std::string("~1") : std::string(1, c);
  return out;
}

}  // namespace

SchemaDocument::SchemaDocument(std::string_view json) {
  if (json.size() > max_source_bytes)
    refuse("JSON schema", str("has ", json.size(), " bytes; at most ", max_source_bytes, " are accepted"),
           "shorten the schema");
  root_ = parse_json(json, "JSON schema");
  if (!is_schema(root_)) refuse("JSON schema", "is neither an object nor true or false", "write {...}");
  name_parts(root_, "", 0);
}

// `depth`: how many objects are around it that are schemas, as far as that can be told from here.
void SchemaDocument::name_parts(const Value& value, const std::string& pointer, int depth) {
  if (depth > max_schema_depth)
    refuse("JSON schema at " + pointer.substr(0, 200),
           str("has more than ", max_schema_depth, " schemas inside each other"), "nest less deeply, or use $ref");
  pointers_[&value] = pointer;
  parts_[pointer] = &value;
  for (const auto& [key, part] : value.entries) {
    const bool by_name = key == "properties" || key == "patternProperties" || key == "$defs" || key == "definitions";
    name_parts(part, pointer + "/" + escaped(key), depth + !by_name);
  }
  for (size_t i = 0; i < value.items.size(); ++i)
    name_parts(value.items[i], str(pointer, "/", i), depth + value.items[i].is_list());
}

std::string SchemaDocument::pointer(const Value& part, std::string_view keyword) const {
  const auto at = pointers_.find(&part);
  std::string out = at == pointers_.end() ? "" : at->second;
  if (!keyword.empty()) out += "/" + escaped(keyword);
  return out.empty() ? "/" : out;
}

void SchemaDocument::fail(const Value& part, std::string_view keyword, const std::string& problem,
                          const std::string& remedy) const {
  refuse("JSON schema at " + pointer(part, keyword), problem, remedy);
}

const Value& SchemaDocument::target(const Value& schema) const {
  const std::string& name = schema.find("$ref")->scalar;
  if (!name.starts_with('#'))
    fail(schema, "$ref", "'" + name + "' is not in this document", "put it under $defs and refer to #/$defs/NAME");
  std::string pointer;
  for (size_t i = 1; i < name.size(); ++i) {
    int code = -1;
    if (name[i] == '%' && i + 2 < name.size()) {
      const auto digit = [](char c) {
        return c >= '0' && c <= '9'   ? c - '0'
               : c >= 'a' && c <= 'f' ? c - 'a' + 10
               : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                      : -1;
      };
      const int high = digit(name[i + 1]), low = digit(name[i + 2]);
      if (high >= 0 && low >= 0) code = high * 16 + low, i += 2;
    }
    pointer += code >= 0 ? char(code) : name[i];
  }
  const auto at = parts_.find(pointer);
  if (at == parts_.end())
    fail(schema, "$ref", "'" + name + "' names nothing", "a JSON pointer is supported: #/$defs/NAME");
  if (!is_schema(*at->second)) fail(schema, "$ref", "'" + name + "' is not a schema");
  return *at->second;
}

void SchemaDocument::check(const Value& schema) {
  if (!checked_.insert(&schema).second) return;
  if (!is_schema(schema)) fail(schema, "", "is not a schema", "a schema is an object, or true or false");
  for (const auto& [key, value] : schema.entries) check_keyword(schema, key, value);
}

void SchemaDocument::check_keyword(const Value& schema, const std::string& key, const Value& value) const {
  if (key.starts_with("x-")) return;
  const auto* const known =
      std::ranges::find(keywords, key, [](const auto& each) { return std::string_view(each.first); });
  if (known == keywords.end())
    fail(schema, key, "the keyword '" + key + "' is not supported",
         "leave it out, and check what it says after generating; docs/constrained_output.md lists the keywords that "
         "are supported");
  const auto need = [&](bool holds, const std::string& what) {
    if (!holds) fail(schema, key, "is not " + what);
  };
  const bool is_number =
      value.kind == Value::Kind::plain && value.as_double().has_value() && Decimal::parse(value.scalar).has_value();
  switch (known->second) {
    case Keyword::passed_over:
      return;
    case Keyword::schema:
      return need(is_schema(value), "a schema");
    case Keyword::schema_or_list:
      return need(is_schema(value) || (value.is_list() && std::ranges::all_of(value.items, is_schema)),
                  "a schema or a list of schemas");
    case Keyword::schemas_by_name:
      return need(value.is_map() &&
                      std::ranges::all_of(value.entries, [](const auto& entry) { return is_schema(entry.second); }),
                  "an object of schemas");
    case Keyword::schemas:
      return need(value.is_list() && !value.items.empty() && std::ranges::all_of(value.items, is_schema),
                  "a list of schemas");
    case Keyword::count: {
      const int64_t count = value.kind == Value::Kind::plain ? value.as_int().value_or(-1) : -1;
      need(count >= 0, "a whole number from 0");
      if (count > max_repetitions)
        fail(schema, key, str("is ", count, "; at most ", max_repetitions, " are accepted"),
             "lower it, or leave it out");
      return;
    }
    case Keyword::number:
      return need(is_number, "a number");
    case Keyword::multiple: {
      need(is_number, "a number");
      const auto number = value.as_int();
      if (!number || *number <= 0)
        fail(schema, key, str("is ", value.scalar, "; only whole numbers above 0 are supported"),
             "leave it out, and round after generating");
      return;
    }
    case Keyword::type: {
      const auto is_type = [](const Value& type) {
        return type.is_text() && std::ranges::find(types, type.scalar) != types.end();
      };
      const bool good =
          is_type(value) || (value.is_list() && !value.items.empty() && std::ranges::all_of(value.items, is_type));
      if (!good)
        fail(schema, key, to_json(value).substr(0, 80) + " is not a type",
             "types: null, boolean, integer, number, string, array, object");
      return;
    }
    case Keyword::values:
      return need(value.is_list() && !value.items.empty(), "a list of values");
    case Keyword::value:
      return;
    case Keyword::names:
      return need(value.is_list() && std::ranges::all_of(value.items, &Value::is_text), "a list of names");
    case Keyword::text:
      need(value.is_text(), "a string");
      if ((key == "$id" || key == "id") && &schema != &root_)
        fail(schema, key, "a schema with a name of its own inside another one is not supported",
             "leave the name out; refer to #/$defs/NAME");
      return;
    case Keyword::must_be_false:
      if (value.as_bool() == false) return;
      fail(schema, key, "the keyword '" + key + "' is not supported",
           key == "nullable" ? "write the type as [\"...\", \"null\"]" : "leave it out, and check it after generating");
  }
}

}  // namespace easydel::text::constrain
