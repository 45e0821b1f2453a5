// What a config struct looks like from outside: reading, writing back, schema, docs and --help need only this.
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
  std::vector<std::string> deprecated = {};  // old names: accepted, and said
  std::string no_effect = {};                // why the key does nothing here
  std::string not_built = {};                // what is missing: only the default is accepted
  bool required = false;
  Shape shape = Shape::value;
  const Section* (*section)() = nullptr;  // of the shapes with sections
  // Reads `value` into this key's member of the struct at `object`, noting what is wrong.
  std::function<void(const Value& value, void* object, const std::string& path, Problems&)> read = {};
  std::function<Value(const void* object)> write = {};
  // For nested sections: what settle() does where the document does not have them.
  std::function<void(void* object, const std::string& path, Problems&)> settle = {};

  bool answers_to(std::string_view word) const;  // its name, an alias or an old name
};

// Keys that count only with one value of another key: those of trainer_type dpo.
struct Variant {
  std::string name;
  const Section* section;
};

struct Section {
  std::string doc;
  std::vector<Key> keys = {};
  std::vector<Variant> variants = {};
  bool open = false;  // passes over keys that it does not know: for files that others write, as config.json
  // Where an open section keeps them; null: nowhere.
  std::function<Value*(void* object)> unknown_keys = {};
  std::function<void(void* object, Keys& keys)> settle =
      {};  // cross-key rules, after its keys were read without problem
  // A section whose keys depend on a value of it reads and writes itself (trainer: by trainer_type); `keys` and
  // `variants` then are all that it may have, for schema and docs.
  std::function<void(const Value& value, void* object, const std::string& path, Problems&)> read_all = {};
  std::function<Value(const void* object)> write_all = {};
  // Of a flat section (config::flat): its parts with their objects, for who sets it beside others.
  std::function<std::vector<Part>(void* object)> parts = {};
};

std::string join_path(const std::string& path, std::string_view name);

// Fills the struct at `object`. Every problem is collected; none stops the reading. A null is an empty section.
void read_section(const Section&, const Value&, void* object, const std::string& path, Problems&);
// The struct as a document, in the order of the table; keys that are not built yet are left out.
Value write_section(const Section&, const void* object);

// One flat section from several tables: a key goes to every part that knows it; only a key that none knows is wrong.
struct Part {
  const Section* section;
  void* object;
};
void read_sections(std::span<const Part> parts, const Value&, const std::string& path, Problems&);
Value write_sections(std::span<const Part> parts);
// One table with the keys of all, for schema and docs; the first to name a key describes it.
Section merged(std::string doc, std::span<const Section* const> sections);

// What of `document` (written by write_section) is not as `defaults`.
Value differences(const Value& document, const Value& defaults);

Value json_schema(const Section&);
// "# title" and a table of keys; nested sections below it with their paths as titles.
std::string markdown(const Section&, const std::string& path = "");
// One line a key with its default and meaning, for terminals.
std::string help(const Section&, const std::string& path = "");
std::string default_yaml(const Section&, int indent = 0);
// The key at "trainer.learning_rate" (list and map levels are passed through), also of a variant, or null.
const Key* find_key(const Section&, std::string_view path);

}  // namespace easydel::config
