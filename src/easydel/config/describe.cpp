// Schema, documentation, help and default file, all generated from the field tables.
#include <algorithm>

#include "easydel/config/section.h"

namespace easydel::config {
namespace {

std::string pad(int n) { return std::string(size_t(n), ' '); }

std::string title_of(const Key& key, const std::string& path) {
  const std::string below = join_path(path, key.name);
  return key.shape == Key::Shape::list_of_sections  ? below + "[]"
         : key.shape == Key::Shape::map_of_sections ? below + ".*"
                                                    : below;
}

// The key's meaning and all other remarks about it.
std::string remarks(const Key& key) {
  std::string out = key.doc;
  const auto also = [&out](const std::string& text) { out += (out.empty() ? "" : " ") + text; };
  for (const std::string& name : key.aliases) also("Also `" + name + "`.");
  for (const std::string& name : key.deprecated) also("Old name: `" + name + "`.");
  if (!key.no_effect.empty()) also("*Has no effect here: " + key.no_effect + ".*");
  if (!key.not_built.empty()) also("*Not built yet: " + key.not_built + ".*");
  return out;
}

std::string escaped(std::string text) {
  for (size_t at = 0; (at = text.find('|', at)) != std::string::npos; at += 2) text.insert(at, "\\");
  return text;
}

Value key_schema(const Key& key) {
  Value schema = key.schema;
  if (key.shape != Key::Shape::value) {
    Value inner = json_schema(*key.section());
    schema = Value::map();
    if (key.shape == Key::Shape::section) schema = std::move(inner);
    if (key.shape == Key::Shape::list_of_sections) {
      schema.set("type", Value::text("array"));
      schema.set("items", std::move(inner));
    }
    if (key.shape == Key::Shape::map_of_sections) {
      schema.set("type", Value::text("object"));
      schema.set("additionalProperties", std::move(inner));
    }
  } else {
    schema.set("default", key.default_value);
  }
  if (!key.doc.empty()) schema.set("description", Value::text(remarks(key)));
  return schema;
}

// One schema for a key that several variants define differently.
void join_schema(Value& properties, const std::string& name, const Value& schema) {
  Value* const there = properties.find(name);
  if (!there) return void(properties.set(name, schema));
  if (*there == schema) return;
  Value either = Value::map(), any = Value::list();
  if (const Value* before = there->find("x-variants"))
    any = *before;
  else
    any.items.push_back(*there);
  if (std::ranges::find(any.items, schema) == any.items.end()) any.items.push_back(schema);
  either.set("x-variants", std::move(any));
  *there = std::move(either);
}

}  // namespace

Value json_schema(const Section& section) {
  Value out = Value::map(), properties = Value::map(), required = Value::list();
  out.set("type", Value::text("object"));
  if (!section.doc.empty()) out.set("description", Value::text(section.doc));
  for (const Key& key : section.keys) {
    const Value schema = key_schema(key);
    properties.set(key.name, schema);
    for (const std::string& name : key.aliases) properties.set(name, schema);
    for (const std::string& name : key.deprecated) {
      Value old = schema;
      old.set("deprecated", Value::boolean(true));
      properties.set(name, old);
    }
    if (key.required) required.items.push_back(Value::text(key.name));
  }
  for (const Variant& variant : section.variants)
    for (const Key& key : variant.section->keys) {
      const Value schema = key_schema(key);
      join_schema(properties, key.name, schema);
      for (const std::string& name : key.aliases) join_schema(properties, name, schema);
    }
  for (auto& [name, schema] : properties.entries)
    if (!schema.entries.empty() && schema.entries[0].first == "x-variants") schema.entries[0].first = "anyOf";
  out.set("properties", std::move(properties));
  if (!required.items.empty()) out.set("required", std::move(required));
  out.set("additionalProperties", Value::boolean(section.open));
  return out;
}

std::string markdown(const Section& section, const std::string& path) {
  std::string out;
  if (!path.empty()) out += "## " + path + "\n\n";
  if (!section.doc.empty()) out += section.doc + "\n\n";
  const auto is_value = [](const Key& key) { return key.shape == Key::Shape::value; };
  if (std::ranges::any_of(section.keys, is_value)) {
    out += "| key | default | expects | meaning |\n|---|---|---|---|\n";
    for (const Key& key : section.keys)
      if (is_value(key))
        out += "| `" + key.name + "` | " +
               (key.required ? "required" : "`" + escaped(to_yaml_flow(key.default_value)) + "`") + " | " +
               escaped(key.expects) + " | " + escaped(remarks(key)) + " |\n";
    out += "\n";
  }
  if (section.open) out += "Other keys are allowed.\n\n";
  for (const Variant& variant : section.variants) out += markdown(*variant.section, join_path(path, variant.name));
  for (const Key& key : section.keys)
    if (!is_value(key)) {
      const std::string title = title_of(key, path);
      std::string inner = markdown(*key.section(), title);
      // The key says what the section is for; the struct's own doc follows.
      const size_t after_title = inner.find("\n\n") + 2;
      out += inner.insert(after_title, remarks(key) + "\n\n");
    }
  return out;
}

std::string help(const Section& section, const std::string& path) {
  std::string out;
  for (const Key& key : section.keys) {
    if (key.shape != Key::Shape::value) {
      out += help(*key.section(), title_of(key, path));
      continue;
    }
    std::string head =
        "  " + join_path(path, key.name) + ": " + (key.required ? "(required)" : to_yaml_flow(key.default_value));
    head.resize(std::max<size_t>(head.size() + 2, 44), ' ');
    out += head + remarks(key) + " (" + key.expects + ")\n";
  }
  for (const Variant& variant : section.variants) out += help(*variant.section, join_path(path, variant.name));
  return out;
}

std::string default_yaml(const Section& section, int indent) {
  std::string out;
  for (const Key& key : section.keys) {
    const std::string head = pad(indent) + key.name + ":";
    if (key.shape == Key::Shape::section)
      out += head + "\n" + default_yaml(*key.section(), indent + 2);
    else
      out += head + " " + to_yaml_flow(key.default_value) + "  # " + key.doc + "\n";
  }
  return out;
}

}  // namespace easydel::config
