// A parsed YAML or JSON document: values that remember where they were written.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace easydel {

struct Place {
  int line = 0;    // from 1; 0: nowhere (a default, a command line)
  int column = 0;  // from 1, in bytes
};

struct Value {
  // text: a quoted string. plain: a number, a boolean or an unquoted word; the field that reads it decides which (see
  // as_bool and so on).
  enum class Kind : uint8_t { null, plain, text, list, map };

  Kind kind = Kind::null;
  Place place = {};
  std::string scalar = {};                                  // plain and text
  std::vector<Value> items = {};                            // list
  std::vector<std::pair<std::string, Value>> entries = {};  // map, in file order
  std::vector<Place> key_places = {};                       // map: the place of each key (may be empty)

  static Value text(std::string s);
  static Value boolean(bool b);
  static Value integer(int64_t i);
  static Value number(double d);  // shortest form that reads back to the same double
  static Value list();
  static Value map();

  bool is_null() const { return kind == Kind::null; }
  bool is_map() const { return kind == Kind::map; }
  bool is_list() const { return kind == Kind::list; }
  bool is_text() const { return kind == Kind::text; }
  // The value of a plain scalar; nullopt if it is of another type. 1e-5 is a number, yes/no/on/off are words.
  std::optional<bool> as_bool() const;
  std::optional<int64_t> as_int() const;  // also 1e3 and 2.0, which are whole numbers
  std::optional<double> as_double() const;
  std::optional<std::string> as_string() const;  // text, or an unquoted word that is not a number, boolean or null

  const Value* find(std::string_view key) const;  // nullptr: no such key; only for maps
  Value* find(std::string_view key);
  Value& set(std::string_view key, Value value);  // replaces or appends; turns a null into a map
};

// Equal as documents, regardless of places and of the order of keys.
bool operator==(const Value& a, const Value& b);

// YAML 1.2 core schema with merge keys and anchors; a duplicate key, a cycle, an alias bomb or a second document
// is a UserError "name:line:column: ...". `name` is what the errors call the file.
Value parse_yaml(std::string_view text, std::string_view name = "document");
// Strict JSON (RFC 8259) with NaN, Infinity and -Infinity as Python writes them; duplicate keys are refused.
Value parse_json(std::string_view text, std::string_view name = "document");
// By extension: .json is JSON, everything else YAML. UserError for a missing or unreadable file.
Value parse_file(const std::filesystem::path& path);

std::string to_yaml(const Value& value);                  // block style, ends in a newline
std::string to_yaml_flow(const Value& value);             // on one line, for messages
std::string to_json(const Value& value, int indent = 0);  // 0: on one line

}  // namespace easydel
