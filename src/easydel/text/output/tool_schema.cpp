// Extracts types from schemas, and converts text to values of these types.
#include "easydel/text/output/tool_schema.h"

#include <algorithm>

#include "easydel/text/output/reading.h"

namespace easydel::text {
namespace {

void add_type(std::string_view name, ArgumentType& out) {
  if (name == "string" || name == "str" || name == "text" || name == "enum") out.string = true;
  if (name.starts_with("int") || name.starts_with("uint") || name == "long" || name == "short") out.integer = true;
  if (name.starts_with("num") || name == "float" || name == "double") out.number = true;
  if (name.starts_with("bool")) out.boolean = true;
  if (name == "null" || name == "none") out.null = true;
  if (name == "object" || name == "dict" || name == "map") out.object = true;
  if (name == "array" || name == "list" || name == "tuple") out.array = true;
}

// The type of a value of an enum.
void add_value(const Value& value, ArgumentType& out) {
  switch (value.kind) {
    case Value::Kind::null:
      out.null = true;
      break;
    case Value::Kind::text:
      out.string = true;
      break;
    case Value::Kind::list:
      out.array = true;
      break;
    case Value::Kind::map:
      out.object = true;
      break;
    case Value::Kind::plain:
      (value.as_bool() ? out.boolean : value.as_int() ? out.integer : out.number) = true;
  }
}

void add_schema(const Value& schema, const Value& root, ArgumentType& out, int depth = 0) {
  if (!schema.is_map() || depth > 8) return;
  if (const Value* type = schema.find("type")) {
    if (auto name = type->as_string()) add_type(*name, out);
    for (const Value& each : type->items)
      if (auto name = each.as_string())
        add_type(*name, out);
      else if (each.is_null())
        out.null = true;
  }
  for (const char* key : {"anyOf", "oneOf", "allOf"})
    if (const Value* list = schema.find(key))
      for (const Value& each : list->items) add_schema(each, root, out, depth + 1);
  if (const Value* nullable = schema.find("nullable"); nullable && nullable->as_bool() == true) out.null = true;
  if (const Value* ref = schema.find("$ref"); ref && ref->is_text() && ref->scalar.starts_with("#/")) {
    const Value* at = &root;
    for (size_t begin = 2; at && begin <= ref->scalar.size();) {
      const size_t end = std::min(ref->scalar.find('/', begin), ref->scalar.size());
      at = at->is_map() ? at->find(std::string_view(ref->scalar).substr(begin, end - begin)) : nullptr;
      begin = end + 1;
    }
    if (at) add_schema(*at, root, out, depth + 1);
  }
  if (!out.unknown()) return;
  if (const Value* values = schema.find("enum"))
    for (const Value& value : values->items) add_value(value, out);
  if (const Value* value = schema.find("const")) add_value(*value, out);
  if (out.unknown() && schema.find("properties")) out.object = true;
  if (out.unknown() && schema.find("items")) out.array = true;
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view space = " \t\r\n";
  const size_t first = text.find_first_not_of(space);
  return first == std::string_view::npos ? "" : text.substr(first, text.find_last_not_of(space) - first + 1);
}

}  // namespace

ToolSchemas::ToolSchemas(Value tools) : tools_(std::move(tools)) {}

const Value* ToolSchemas::tool_at(size_t index) const {
  const Value& each = tools_.items[index];
  const Value* tool = each.is_map() ? each.find("function") : nullptr;
  if (tool && tool->is_map()) return tool;
  return each.is_map() ? &each : nullptr;
}

std::string ToolSchemas::name(size_t index) const {
  const Value* tool = tool_at(index);
  const Value* name = tool ? tool->find("name") : nullptr;
  return name ? name->scalar : "";
}

const Value* ToolSchemas::tool(std::string_view name) const {
  for (size_t i = 0; i < size(); ++i)
    if (this->name(i) == name) return tool_at(i);
  return nullptr;
}

bool ToolSchemas::knows(std::string_view name) const { return tool(name) != nullptr; }

const Value* ToolSchemas::parameters(std::string_view name) const {
  const Value* found = tool(name);
  if (!found) return nullptr;
  for (const char* key : {"parameters", "input_schema", "inputSchema"})
    if (const Value* parameters = found->find(key); parameters && parameters->is_map()) return parameters;
  return nullptr;
}

const Value* ToolSchemas::property(std::string_view name, std::string_view parameter) const {
  const Value* schema = parameters(name);
  const Value* properties = schema ? schema->find("properties") : nullptr;
  return properties && properties->is_map() ? properties->find(parameter) : nullptr;
}

ArgumentType ToolSchemas::type_of(std::string_view name, std::string_view parameter) const {
  ArgumentType out;
  if (const Value* schema = property(name, parameter)) add_schema(*schema, *parameters(name), out);
  return out;
}

std::string lowered(std::string_view text) {
  std::string out(text.substr(0, 16));
  std::transform(out.begin(), out.end(), out.begin(), [](unsigned char c) { return std::tolower(c); });
  return out;
}

std::string coerced(std::string_view text, const ArgumentType& type, bool guesses) {
  const std::string_view word = trimmed(text);
  const std::string lower = lowered(word);
  const bool any = type.unknown() && guesses;
  if ((type.null || any) && (lower == "null" || lower == "none")) return "null";
  if ((type.boolean || any) && (lower == "true" || lower == "false")) return lower;
  // The whole text must be a value; its beginning decides between number, object and array.
  if (any || type.integer || type.number || type.object || type.array) {
    std::optional<std::string> json = value_as_json(word, Notation::json);
    if (!json) json = value_as_json(word, Notation::python);
    if (json) {
      const char first = (*json)[0];
      const bool number = first == '-' || std::isdigit(static_cast<unsigned char>(first));
      const bool whole = number && json->find_first_of(".eE") == std::string::npos;
      const bool fits = first == '{'   ? type.object
                        : first == '[' ? type.array
                                       : number && (type.number || (type.integer && whole));
      if (fits || (any && first != '"')) return *json;
      if (any) return *json;
    }
  }
  return json_quoted(text);
}

}  // namespace easydel::text
