// The table of a config struct without its type: enough to read, write, and make the schema, docs and --help.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "easydel/base/document.h"
#include "easydel/config/problems.h"

namespace easydel::config {

struct Section;
struct Part;

struct Key {
  enum class Shape : uint8_t { value, section, list_of_sections, map_of_sections };

  std::string name;
  std::string doc;
  std::string expects = {};  // "an integer from 1 to 256", "one of: auto, dense, paged"
  Value schema = {};         // JSON Schema of one value
  Value default_value = {};
  std::vector<std::string> aliases = {};
  std::vector<std::string> deprecated = {};  // old names: accepted with a note
  std::string no_effect = {};                // why the key has no effect here
  std::string not_built = {};                // the missing feature: only the default is accepted
  bool required = false;
  Shape shape = Shape::value;
  const Section* (*section)() = nullptr;    // of the shapes with sections
  void* (*member)(void* object) = nullptr;  // where the struct at `object` has it
  // Reads `value` into this key's member of the struct at `object` and adds what is wrong to the problems.
  std::function<void(const Value& value, void* object, const std::string& path, Problems&)> read = {};
  std::function<Value(const void* object)> write = {};
  // For nested sections that the document does not have: runs their settle().
  std::function<void(void* object, const std::string& path, Problems&)> settle = {};

  bool answers_to(std::string_view word) const;  // its name, an alias or an old name
};

// Keys that are valid only with one value of another key, for example those of trainer_type dpo.
struct Variant {
  std::string name;
  const Section* section;
};

struct Section {
  std::string doc;
  std::vector<Key> keys = {};
  std::vector<Variant> variants = {};
  bool open = false;  // accepts unknown keys: for files of other programs, such as config.json
  // Where an open section stores them; null: nowhere.
  std::function<Value*(void* object)> unknown_keys = {};
  std::function<void(void* object, Keys& keys)> settle =
      {};  // cross-key rules, after its keys were read without problem
  // A section whose keys depend on one of its values (trainer: trainer_type) reads and writes itself. `keys` and
  // `variants` are then all keys that it may have, for schema and docs.
  std::function<void(const Value& value, void* object, const std::string& path, Problems&)> read_all = {};
  std::function<Value(const void* object)> write_all = {};
  // Of a flat section (config::flat): its parts with their objects, to combine it with other sections.
  std::function<std::vector<Part>(void* object)> parts = {};
};

std::string join_path(const std::string& path, std::string_view name);

// Fills the struct at `object` and collects every problem; none stops the reading. A null is an empty section.
void read_section(const Section&, const Value&, void* object, const std::string& path, Problems&);
// The struct as a document, in the order of the table; keys that are not built yet are left out at their default.
Value write_section(const Section&, const void* object);

// One flat section from several tables. A key goes to every part that knows it; a key that no part knows is an error.
struct Part {
  const Section* section;
  void* object;
};
void read_sections(std::span<const Part> parts, const Value&, const std::string& path, Problems&);
Value write_sections(std::span<const Part> parts);
// One table with the keys of all sections, for schema and docs. The first section with a key describes it.
Section merged(std::string doc, std::span<const Section* const> sections);

// The keys of `document` (written by write_section) whose values are not those of `defaults`.
Value differences(const Value& document, const Value& defaults);

Value json_schema(const Section&);
// "# title" and a table of keys; nested sections below it with their paths as titles.
std::string markdown(const Section&, const std::string& path = "");
// One line per key with its default and meaning, for terminals.
std::string help(const Section&, const std::string& path = "");
std::string default_yaml(const Section&, int indent = 0);
// The key at "trainer.learning_rate" (indices of lists and names of maps are skipped), also of a variant; null: none.
const Key* find_key(const Section&, std::string_view path);

}  // namespace easydel::config
