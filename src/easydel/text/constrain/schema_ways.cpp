// The ways in which a set of schemas can be satisfied, which of them are surely empty, and whether a given value is
// among them.
#include <algorithm>
#include <set>

#include "easydel/base/error.h"
#include "easydel/text/constrain/schema_compiler.h"
#include "easydel/text/unicode.h"

namespace easydel::text::constrain {
namespace {

constexpr size_t max_ways = 4096;

bool same_value(const Value& a, const Value& b) {
  if (a.kind != b.kind) return false;
  if (a.kind == Value::Kind::text || a.is_null()) return a.scalar == b.scalar;
  if (a.kind == Value::Kind::plain) {
    const auto x = Decimal::parse(a.scalar), y = Decimal::parse(b.scalar);
    return x && y ? *x == *y : a.scalar == b.scalar;
  }
  if (a.is_list()) return std::ranges::equal(a.items, b.items, same_value);
  return a.entries.size() == b.entries.size() && std::ranges::all_of(a.entries, [&](const auto& entry) {
           const Value* const other = b.find(entry.first);
           return other && same_value(entry.second, *other);
         });
}

}  // namespace

// A way while choices in it are open.
struct SchemaCompiler::Open {
  struct Choice {
    const Value* owner;
    bool one;                        // oneOf
    std::vector<const Value*> path;  // the schemas that led to it
  };
  Way schemas;
  std::vector<Choice> choices;
  bool possible = true;
};

void SchemaCompiler::follow(const Value& schema, std::vector<const Value*>& path, Open& open) {
  grammar_.work().spend(8);
  if (const auto flag = schema.as_bool(); !schema.is_map() && flag) {
    open.possible &= *flag;
    return;
  }
  document_.check(schema);
  if (std::ranges::find(path, &schema) != path.end())
    document_.fail(schema, "", "leads back to itself without an end",
                   "a recursive schema has to go through properties or items");
  if (std::ranges::find(open.schemas, &schema) != open.schemas.end()) return;
  if (path.size() > 512) document_.fail(schema, "", "is reached through more than 512 references");
  open.schemas.push_back(&schema);
  path.push_back(&schema);
  if (schema.find("$ref")) follow(document_.target(schema), path, open);
  if (const Value* const all = schema.find("allOf"))
    for (const Value& each : all->items) follow(each, path, open);
  for (const char* keyword : {"anyOf", "oneOf"})
    if (schema.find(keyword)) open.choices.push_back({&schema, std::string_view(keyword) == "oneOf", path});
  path.pop_back();
}

std::vector<SchemaCompiler::Way> SchemaCompiler::ways(const Schemas& schemas) {
  Open open;
  for (const Value* schema : schemas) {
    std::vector<const Value*> path;
    follow(*schema, path, open);
  }
  return ways_of(std::move(open), true);
}

std::vector<SchemaCompiler::Way> SchemaCompiler::ways_of(Open first, bool check) {
  std::vector<Way> out;
  std::set<Way> known;
  std::vector<Open> todo = {std::move(first)};
  while (!todo.empty()) {
    Open open = std::move(todo.back());
    todo.pop_back();
    if (!open.possible) continue;
    if (open.choices.empty()) {
      if (known.insert(open.schemas).second) out.push_back(std::move(open.schemas));
      continue;
    }
    const Open::Choice choice = std::move(open.choices.back());
    open.choices.pop_back();
    if (choice.one && check) check_one_of(*choice.owner, open);
    for (const Value& branch : choice.owner->find(choice.one ? "oneOf" : "anyOf")->items) {
      Open& next = todo.emplace_back(open);
      std::vector<const Value*> path = choice.path;
      follow(branch, path, next);
    }
    if (todo.size() + out.size() > max_ways)
      document_.fail(*choice.owner, choice.one ? "oneOf" : "anyOf",
                     str("gives more than ", max_ways, " combinations with the others that apply"),
                     "combine fewer of them");
  }
  return out;
}

// A value must satisfy exactly one: that is only kept if no value satisfies two.
void SchemaCompiler::check_one_of(const Value& owner, const Open& open) {
  const std::vector<Value>& branches = owner.find("oneOf")->items;
  for (size_t i = 0; i < branches.size(); ++i)
    for (size_t j = i + 1; j < branches.size(); ++j) {
      Open both = open;
      both.choices.clear();
      for (const size_t k : {i, j}) {
        std::vector<const Value*> path;
        follow(branches[k], path, both);
      }
      const std::vector<Way> common = ways_of(std::move(both), false);
      if (std::ranges::all_of(common, [&](const Way& way) { return surely_empty_way(way, 0); })) continue;
      document_.fail(owner, "oneOf", str("a value may satisfy both alternative ", i, " and alternative ", j),
                     "use anyOf, or tell them apart by type, const or required properties with different values");
    }
}

bool SchemaCompiler::surely_empty(const Schemas& schemas, int depth) {
  Open open;
  for (const Value* schema : schemas) {
    std::vector<const Value*> path;
    follow(*schema, path, open);
  }
  return std::ranges::all_of(ways_of(std::move(open), false),
                             [&](const Way& way) { return surely_empty_way(way, depth); });
}

bool SchemaCompiler::surely_empty_way(const Way& way, int depth) {
  constexpr int deep = 4;
  if (depth > deep) return false;
  grammar_.work().spend(16);
  if (const auto values = listed(way)) return values->empty();
  const uint8_t types = types_of(way);
  if (types & (null | boolean)) return false;
  if (types & (integer | fraction)) {
    const NumberLimits limits = number_limits(way, !(types & fraction));
    const bool empty =
        limits.min && limits.max &&
        (*limits.min > *limits.max || (*limits.min == *limits.max && (limits.above_min || limits.below_max)));
    if (!empty) return false;
  }
  if ((types & string) && !texts_of(way).empty()) return false;
  if (types & array) {
    const Counts count = counts(way, "minItems", "maxItems");
    bool empty = !count.possible();
    for (size_t i = 0; i < size_t(count.min) && i <= items_listed(way) && !empty; ++i) {
      Schemas schemas;
      empty = !item_schemas(way, i, schemas) || surely_empty(schemas, depth + 1);
    }
    if (!empty) return false;
  }
  if (types & object) {
    const Shape shape = shape_of(way);
    const bool empty = !shape.possible || !shape.count.possible() ||
                       std::ranges::any_of(shape.properties, [&](const Property& property) {
                         return property.required && surely_empty(property.schemas, depth + 1);
                       });
    if (!empty) return false;
  }
  return true;
}

std::optional<std::vector<const Value*>> SchemaCompiler::listed(const Way& way) {
  for (const Value* schema : way) {
    const Value* const one = schema->find("const");
    const Value* const some = schema->find("enum");
    if (!one && !some) continue;
    std::vector<const Value*> out;
    const auto add = [&](const Value& value) {
      if (admits_way(way, value)) out.push_back(&value);
    };
    if (one)
      add(*one);
    else
      for (const Value& value : some->items) add(value);
    return out;
  }
  return std::nullopt;
}

bool SchemaCompiler::admits(const Schemas& schemas, const Value& value) {
  return std::ranges::any_of(ways(schemas), [&](const Way& way) { return admits_way(way, value); });
}

bool SchemaCompiler::admits_number(const Way& way, const Value& value) {
  const auto number = Decimal::parse(value.scalar);
  if (!number) return false;
  const uint8_t types = types_of(way);
  if (!(types & fraction) && !number->is_integer()) return false;
  const NumberLimits limits = number_limits(way, false);
  if (limits.min && (*number < *limits.min || (limits.above_min && *number == *limits.min))) return false;
  if (limits.max && (*number > *limits.max || (limits.below_max && *number == *limits.max))) return false;
  return !limits.multiple_of || (number->is_integer() && number->modulo(limits.multiple_of) == 0);
}

// Recursion: as deep as the value, which is a part of the schema's document.
bool SchemaCompiler::admits_way(const Way& way, const Value& value) {
  grammar_.work().spend(8);
  for (const Value* schema : way) {
    if (const Value* const one = schema->find("const"); one && !same_value(*one, value)) return false;
    if (const Value* const some = schema->find("enum");
        some && std::ranges::none_of(some->items, [&](const Value& each) { return same_value(each, value); }))
      return false;
  }
  const uint8_t types = types_of(way);
  switch (value.kind) {
    case Value::Kind::null:
      return types & null;
    case Value::Kind::plain:
      if (value.as_bool()) return types & boolean;
      return (types & (integer | fraction)) && admits_number(way, value);
    case Value::Kind::text:
      return (types & string) && texts_of(way).has(value.scalar);
    case Value::Kind::list: {
      const Counts count = counts(way, "minItems", "maxItems");
      const auto size = int64_t(value.items.size());
      if (!(types & array) || size < count.min || (count.max && size > *count.max)) return false;
      for (size_t i = 0; i < value.items.size(); ++i) {
        Schemas schemas;
        if (!item_schemas(way, i, schemas) || !admits(schemas, value.items[i])) return false;
      }
      return true;
    }
    case Value::Kind::map:
      break;
  }
  if (!(types & object)) return false;
  const Shape shape = shape_of(way);
  const auto size = int64_t(value.entries.size());
  if (!shape.possible || size < shape.count.min || (shape.count.max && size > *shape.count.max)) return false;
  for (const Property& property : shape.properties)
    if (property.required && !value.find(property.name)) return false;
  return std::ranges::all_of(value.entries, [&](const auto& entry) {
    for (const Property& property : shape.properties)
      if (property.name == entry.first) return admits(property.schemas, entry.second);
    for (const Others& others : shape.others)
      if (!others.names || others.names->has(entry.first)) return admits(others.schemas, entry.second);
    return false;
  });
}

}  // namespace easydel::text::constrain
