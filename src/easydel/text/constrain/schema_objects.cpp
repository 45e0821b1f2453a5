// Objects and arrays.
#include <algorithm>
#include <set>

#include "easydel/base/error.h"
#include "easydel/text/constrain/schema_compiler.h"

namespace easydel::text::constrain {

SchemaCompiler::Property SchemaCompiler::property_of(const Way& way, const std::string& name, bool required,
                                                     Shape& shape) {
  Property out{name, {}, required};
  bool possible = true;
  for (const Value* schema : way) {
    bool covered = false;
    if (const Value* const properties = schema->find("properties"))
      if (const Value* const own = properties->find(name)) add(out.schemas, *own, possible), covered = true;
    if (const Value* const patterns = schema->find("patternProperties"))
      for (const auto& [text, own] : patterns->entries)
        if (pattern(*patterns, text, text).has(name)) add(out.schemas, own, possible), covered = true;
    if (const Value* const others = schema->find("additionalProperties"); others && !covered)
      add(out.schemas, *others, possible);
    if (const Value* const names = schema->find("propertyNames")) possible &= names_of(*names).has(name);
  }
  if (possible)
    shape.properties.push_back(out);
  else if (required)
    shape.possible = false;
  return out;
}

// Which names there are besides those that are listed, by what their values have to satisfy.
std::vector<SchemaCompiler::Others> SchemaCompiler::others_of(const Way& way, const std::vector<std::string>& names) {
  constexpr size_t max_classes = 64;
  Work& work = grammar_.work();
  std::vector<Others> out = {{}};
  if (!names.empty()) out[0].names = CharDfa::any().join(CharDfa::words(names, work), CharDfa::Join::first_only, work);
  for (const Value* schema : way) {
    struct Part {
      Others others;
      bool covered = false;
    };
    std::vector<Part> parts;
    for (Others& others : out) parts.push_back({std::move(others)});
    const auto restricted = [&](const Others& others, const CharDfa& to, CharDfa::Join how) {
      return others.names.value_or(CharDfa::any()).join(to, how, work);
    };
    if (const Value* const accepted = schema->find("propertyNames")) {
      const CharDfa texts = names_of(*accepted);
      for (Part& part : parts) part.others.names = restricted(part.others, texts, CharDfa::Join::both);
    }
    if (const Value* const patterns = schema->find("patternProperties"))
      for (const auto& [text, own] : patterns->entries) {
        const CharDfa& matching = pattern(*patterns, text, text);
        std::vector<Part> split;
        for (Part& part : parts) {
          Part with = part;
          bool possible = true;
          with.others.names = restricted(part.others, matching, CharDfa::Join::both);
          add(with.others.schemas, own, possible);
          with.covered = true;
          if (possible && !with.others.names->empty()) split.push_back(std::move(with));
          part.others.names = restricted(part.others, matching, CharDfa::Join::first_only);
          if (!part.others.names->empty()) split.push_back(std::move(part));
        }
        parts = std::move(split);
        if (parts.size() > max_classes)
          document_.fail(*patterns, "", str("sorts names into more than ", max_classes, " groups"),
                         "use fewer patterns that overlap");
      }
    const Value* const additional = schema->find("additionalProperties");
    out.clear();
    for (Part& part : parts) {
      bool possible = true;
      if (additional && !part.covered) add(part.others.schemas, *additional, possible);
      if (possible && !(part.others.names && part.others.names->empty())) out.push_back(std::move(part.others));
    }
  }
  return out;
}

SchemaCompiler::Shape SchemaCompiler::shape_of(const Way& way) {
  Shape out;
  out.count = counts(way, "minProperties", "maxProperties");
  // In the order in which the schemas name them, which is the order in which they are written.
  std::vector<std::string> names;
  std::set<std::string, std::less<>> known, required;
  for (const Value* schema : way)
    if (const Value* const properties = schema->find("properties"))
      for (const auto& [name, own] : properties->entries)
        if (known.insert(name).second) names.push_back(name);
  for (const Value* schema : way)
    if (const Value* const list = schema->find("required"))
      for (const Value& name : list->items) {
        required.insert(name.scalar);
        if (known.insert(name.scalar).second) names.push_back(name.scalar);
      }
  for (const std::string& name : names) property_of(way, name, required.contains(name), out);
  out.others = others_of(way, names);
  return out;
}

ExprId SchemaCompiler::object_expr(const Way& way) {
  if (!any_has(way, {"properties", "required", "additionalProperties", "patternProperties", "propertyNames",
                     "minProperties", "maxProperties"}))
    return json_.object();
  return members_expr(
      way, {.open = json_.mark("{"),
            .between = json_.mark(","),
            .close = grammar_.literal("}"),
            .named = [this](const Property& own) { return json_.pair(json_.name(own.name), value(own.schemas)); },
            .other = [this](const Others& own) { return json_.pair(json_.name_of(own.names), value(own.schemas)); }});
}

ExprId SchemaCompiler::members_expr(const Way& way, const MemberForm& form) {
  const Shape shape = shape_of(way);
  if (!shape.possible || !shape.count.possible()) return grammar_.never();
  const auto listed = int64_t(shape.properties.size());
  const int64_t required = std::ranges::count_if(shape.properties, &Property::required);
  // What has to be known of how many there are: up to `last`, beyond which more make no difference or may not come.
  const bool counted =
      shape.count.min > required || (shape.count.max && (!shape.others.empty() || *shape.count.max < listed));
  const int64_t last = !counted ? 1 : shape.count.max ? *shape.count.max : std::max<int64_t>(shape.count.min, 1);
  // The graph: 0 the start, 1 the end, then a node for each number of properties passed and each count.
  const auto node = [&](int64_t passed, int64_t count) { return uint32_t(2 + passed * (last + 1) + count); };
  const auto nodes = size_t(2 + (listed + 1) * (last + 1));
  grammar_.work().add_states(nodes);
  std::vector<GraphEdge> edges = {{0, node(0, 0), form.open}};
  const auto write = [&](int64_t passed, int64_t next, ExprId pair, ExprId later) {
    for (int64_t count = 0; count <= last; ++count) {
      if (count == last && counted && shape.count.max) break;
      edges.push_back({node(passed, count), node(next, std::min(count + 1, last)), count == 0 ? pair : later});
    }
  };
  // Where one property is written at many places of the graph, its text is a rule that they share.
  const auto prepared = [&](ExprId pair, ExprId& later) {
    if (last > 1) {
      const RuleId rule = grammar_.add_rule("property", last > 8);
      grammar_.define(rule, pair);
      pair = grammar_.call(rule);
    }
    later = grammar_.sequence({form.between, pair});
    return pair;
  };
  for (int64_t i = 0; i < listed; ++i) {
    const Property& property = shape.properties[size_t(i)];
    ExprId later = 0;
    const ExprId pair = prepared(form.named(property), later);
    write(i, i + 1, pair, later);
    if (!property.required)
      for (int64_t count = 0; count <= last; ++count) edges.push_back({node(i, count), node(i + 1, count), no_expr});
  }
  if (!shape.others.empty()) {
    std::vector<ExprId> pairs;
    for (const Others& others : shape.others) pairs.push_back(form.other(others));
    ExprId later = 0;
    RuleId rule = grammar_.add_rule("additional property");
    grammar_.define(rule, grammar_.choice(std::move(pairs)));
    const ExprId pair = prepared(grammar_.call(rule), later);
    write(listed, listed, pair, later);
  }
  for (int64_t count = 0; count <= last; ++count)
    if (!counted || count >= shape.count.min) edges.push_back({node(listed, count), 1, form.close});
  return grammar_.graph(uint32_t(nodes), std::move(edges));
}

size_t SchemaCompiler::items_listed(const Way& way) {
  size_t out = 0;
  for (const Value* schema : way) {
    if (const Value* const list = schema->find("prefixItems")) out = std::max(out, list->items.size());
    if (const Value* const items = schema->find("items"); items && items->is_list())
      out = std::max(out, items->items.size());
  }
  return out;
}

bool SchemaCompiler::item_schemas(const Way& way, size_t index, Schemas& out) const {
  bool possible = true;
  for (const Value* schema : way) {
    const Value* const items = schema->find("items");
    const Value* const list = items && items->is_list() ? items : schema->find("prefixItems");
    const Value* const rest = items && items->is_list() ? schema->find("additionalItems") : items;
    if (list && index < list->items.size())
      add(out, list->items[index], possible);
    else if (rest)
      add(out, *rest, possible);
  }
  return possible;
}

ExprId SchemaCompiler::array_expr(const Way& way) {
  if (!any_has(way, {"items", "prefixItems", "minItems", "maxItems"})) return json_.array();
  Counts count = counts(way, "minItems", "maxItems");
  const auto listed = int64_t(items_listed(way));
  std::vector<Schemas> items;
  for (int64_t i = 0; i <= listed; ++i) {
    Schemas schemas;
    if (!item_schemas(way, size_t(i), schemas)) {
      count.max = std::min(count.max.value_or(INT64_MAX), i);
      break;
    }
    items.push_back(std::move(schemas));
  }
  if (!count.possible()) return grammar_.never();
  const int64_t last = count.max ? *count.max : std::max({listed, count.min, int64_t{1}});
  grammar_.work().add_states(size_t(last));
  const auto node = [](int64_t passed) { return uint32_t(2 + passed); };
  std::vector<GraphEdge> edges = {{0, node(0), json_.mark("[")}};
  const ExprId comma = json_.mark(","), close = grammar_.literal("]");
  std::vector<ExprId> labels;  // by place, as far as they differ
  const auto label = [&](int64_t index) {
    const auto at = std::min(size_t(index), items.size() - 1);
    while (labels.size() <= at) {
      ExprId item = grammar_.sequence({value(items[labels.size()]), json_.blanks()});
      if (labels.size() + 1 == items.size() && last - listed > 2) {
        const RuleId rule = grammar_.add_rule("item", last - listed > 16);
        grammar_.define(rule, item);
        item = grammar_.call(rule);
      }
      labels.push_back(item);
    }
    return labels[at];
  };
  for (int64_t i = 0; i <= last; ++i) {
    if (i >= count.min) edges.push_back({node(i), 1, close});
    if (i == last && count.max) break;
    const ExprId item = label(i);
    edges.push_back({node(i), node(std::min(i + 1, last)), i == 0 ? item : grammar_.sequence({comma, item})});
  }
  return grammar_.graph(uint32_t(last) + 3, std::move(edges));
}

}  // namespace easydel::text::constrain
