#include "easydel/config/section.h"

#include <algorithm>

#include "easydel/base/error.h"
#include "easydel/base/names.h"

namespace easydel::config {
namespace {

std::vector<std::string> known_names(std::span<const Part> parts) {
  std::vector<std::string> names;
  for (const Part& part : parts)
    for (const Key& key : part.section->keys) {
      names.push_back(key.name);
      names.insert(names.end(), key.aliases.begin(), key.aliases.end());
    }
  return names;
}

// The path of a key with exactly this name in the sections below; empty: there is none.
std::string place_below(std::string_view name, const Section& section, const std::string& path, int depth) {
  for (const Key& key : section.keys) {
    const std::string here = join_path(path, key.name);
    if (!path.empty() && key.answers_to(name)) return here;
    if (key.shape != Key::Shape::section || depth == 0) continue;
    if (std::string below = place_below(name, *key.section(), here, depth - 1); !below.empty()) return below;
  }
  return "";
}

constexpr size_t max_listed_keys = 24;  // a longer list would be a page instead of a remedy

std::string unknown_key_remedy(std::string_view name, std::span<const Part> parts, const std::string& path) {
  const std::vector<std::string> names = known_names(parts);
  const std::string near = nearest(name, names);
  if (!near.empty()) return "did you mean '" + near + "'?";
  for (const Part& part : parts)
    if (const std::string below = place_below(name, *part.section, "", 2); !below.empty())
      return "did you mean '" + join_path(path, below) + "'?";
  std::vector<std::string> keys;
  for (const Part& part : parts)
    for (const Key& key : part.section->keys) keys.push_back(key.name);
  if (keys.size() > max_listed_keys)
    return "to list its " + std::to_string(keys.size()) + " keys: easydel describe keys " + path;
  std::ranges::sort(keys);
  return "known keys: " + join(keys, ", ");
}

void read_key(const Key& key, const std::string& written, const Value& value, void* object, const std::string& path,
              Place key_place, Problems& problems) {
  problems.saw(path, value.place.line > 0 ? value.place : key_place);
  if (std::ranges::find(key.deprecated, written) != key.deprecated.end())
    problems.note(path, "'" + written + "' is the old name of '" + key.name + "'");
  const size_t before = problems.size();
  key.read(value, object, path, problems);
  if (problems.size() != before) return;
  // Writing copies the value, which may be a body of megabytes, so only where it is needed.
  if (!key.not_built.empty() && !(key.write(object) == key.default_value))
    problems.add(path, value.place, key.not_built + " is not built yet",
                 "leave the key out, or give its default " + to_yaml_flow(key.default_value));
  if (!key.no_effect.empty()) problems.no_effect(path, key.no_effect);
}

}  // namespace

bool Key::answers_to(std::string_view word) const {
  if (word.empty()) return false;
  return word == name || std::ranges::find(aliases, word) != aliases.end() ||
         std::ranges::find(deprecated, word) != deprecated.end();
}

std::string join_path(const std::string& path, std::string_view name) {
  return path.empty() ? std::string(name) : path + "." + std::string(name);
}

void read_sections(std::span<const Part> parts, const Value& value, const std::string& path, Problems& problems) {
  const size_t before = problems.size();
  if (!value.is_null() && !value.is_map())
    return problems.add(path, value.place, "is not a section", "expected keys below it, one per line: 'key: value'");
  std::vector<std::pair<const Key*, std::string>> seen;  // a key of the table, and its spelling in the document
  for (size_t i = 0; i < value.entries.size(); ++i) {
    const auto& [name, child] = value.entries[i];
    const Place key_place = i < value.key_places.size() ? value.key_places[i] : child.place;
    bool known = false, twice = false;
    for (const Part& part : parts) {
      const auto key =
          std::ranges::find_if(part.section->keys, [&, &name = name](const Key& k) { return k.answers_to(name); });
      if (key == part.section->keys.end()) continue;
      known = true;
      const auto earlier = std::ranges::find_if(seen, [&](const auto& s) { return s.first == &*key; });
      if (earlier != seen.end()) {
        if (!twice)
          problems.add(join_path(path, key->name), key_place,
                       "is given twice, as '" + earlier->second + "' and as '" + name + "'",
                       "they are the same key; keep one of them");
        twice = true;
        continue;
      }
      seen.emplace_back(&*key, name);
      read_key(*key, name, child, part.object, join_path(path, key->name), key_place, problems);
    }
    if (known) continue;
    bool kept = false;
    for (const Part& part : parts) {
      if (!part.section->open) continue;
      if (!kept && part.section->unknown_keys) part.section->unknown_keys(part.object)->set(name, child);
      kept = true;
    }
    if (!kept) problems.add(join_path(path, name), key_place, "no such key", unknown_key_remedy(name, parts, path));
  }
  for (const Part& part : parts)
    for (const Key& key : part.section->keys) {
      if (std::ranges::any_of(seen, [&](const auto& s) { return s.first == &key; })) continue;
      if (key.required) {
        problems.add(join_path(path, key.name), value.place, "is missing", "expected " + key.expects);
        continue;
      }
      if (key.settle) key.settle(part.object, join_path(path, key.name), problems);
    }
  if (problems.size() != before) return;  // rules over several keys assume that each key is valid
  for (const Part& part : parts) {
    Keys keys(problems, path);
    if (part.section->settle) part.section->settle(part.object, keys);
  }
}

void read_section(const Section& section, const Value& value, void* object, const std::string& path,
                  Problems& problems) {
  if (section.read_all) return section.read_all(value, object, path, problems);
  const Part part{&section, object};
  read_sections({&part, 1}, value, path, problems);
}

Value write_sections(std::span<const Part> parts) {
  Value out = Value::map();
  for (const Part& part : parts) {
    for (const Key& key : part.section->keys) {
      if (out.find(key.name)) continue;
      Value value = key.write(part.object);
      const bool idle = !key.not_built.empty() || !key.no_effect.empty();
      if (!idle || !(value == key.default_value)) out.set(key.name, std::move(value));
    }
    if (part.section->unknown_keys)
      for (const auto& [name, value] : part.section->unknown_keys(part.object)->entries) out.set(name, value);
  }
  return out;
}

Value write_section(const Section& section, const void* object) {
  if (section.write_all) return section.write_all(object);
  const Part part{&section, const_cast<void*>(object)};
  return write_sections({&part, 1});
}

Section merged(std::string doc, std::span<const Section* const> sections) {
  Section out{.doc = std::move(doc)};
  for (const Section* section : sections)
    for (const Key& key : section->keys)
      if (std::ranges::find(out.keys, key.name, &Key::name) == out.keys.end()) out.keys.push_back(key);
  return out;
}

Value differences(const Value& document, const Value& defaults) {
  if (!document.is_map() || !defaults.is_map()) return document;
  Value out = Value::map();
  for (const auto& [key, value] : document.entries) {
    const Value* other = defaults.find(key);
    if (other && *other == value) continue;
    if (other && value.is_map() && other->is_map())
      out.set(key, differences(value, *other));
    else
      out.set(key, value);
  }
  return out;
}

const Key* find_key(const Section& section, std::string_view path) {
  const std::string_view name = path.substr(0, path.find_first_of(".["));
  const auto key = std::ranges::find_if(section.keys, [&](const Key& k) { return k.answers_to(name); });
  if (key == section.keys.end()) {
    for (const Variant& variant : section.variants)
      if (const Key* found = find_key(*variant.section, path)) return found;
    return nullptr;
  }
  std::string_view rest = path.substr(name.size());
  if (key->shape == Key::Shape::list_of_sections && rest.starts_with('['))
    rest.remove_prefix(std::min(rest.find(']'), rest.size() - 1) + 1);
  if (rest.empty()) return &*key;
  rest.remove_prefix(1);
  if (key->shape == Key::Shape::map_of_sections) {
    const size_t dot = rest.find('.');
    if (dot == std::string_view::npos) return &*key;
    rest.remove_prefix(dot + 1);
  }
  return key->section ? find_key(*key->section(), rest) : nullptr;
}

}  // namespace easydel::config
