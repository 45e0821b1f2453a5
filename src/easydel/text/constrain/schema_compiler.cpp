// Types, numbers, strings and listed values.
#include "easydel/text/constrain/schema_compiler.h"

#include <algorithm>
#include <numeric>

#include "easydel/base/error.h"
#include "easydel/text/constrain/pattern.h"
#include "easydel/text/constrain/schema.h"

namespace easydel::text::constrain {

RuleId read_schema(std::string_view json, const ValueForm& form, Grammar& grammar) {
  SchemaDocument document(json);
  return SchemaCompiler(document, grammar, form).compile();
}

RuleId SchemaCompiler::compile() {
  const RuleId root = grammar_.add_rule("the schema");
  todo_.emplace_back(root, Schemas{&document_.root()});
  rules_.emplace(todo_[0].second, root);
  define_rules();
  return root;
}

void SchemaCompiler::define_rules() {
  for (size_t i = 0; i < todo_.size(); ++i) {
    const auto [rule, schemas] = todo_[i];
    grammar_.define(rule, body(schemas));
  }
}

void SchemaCompiler::add(Schemas& to, const Value& schema, bool& possible) const {
  if (const auto flag = schema.as_bool(); !schema.is_map() && flag) {
    possible &= *flag;
    return;
  }
  if (std::ranges::find(to, &schema) == to.end()) to.push_back(&schema);
}

ExprId SchemaCompiler::value(const Schemas& schemas) {
  if (schemas.empty()) return json_.value();
  const auto [at, is_new] = rules_.emplace(schemas, 0);
  if (is_new) {
    at->second = grammar_.add_rule("the schema at " + document_.pointer(*schemas[0]));
    todo_.emplace_back(at->second, schemas);
  }
  return grammar_.call(at->second);
}

ExprId SchemaCompiler::body(const Schemas& schemas) {
  std::vector<ExprId> parts;
  for (const Way& way : ways(schemas)) parts.push_back(of_way(way));
  return grammar_.choice(std::move(parts));
}

uint8_t SchemaCompiler::types_of(const Way& way) {
  uint8_t out = 127;
  for (const Value* schema : way) {
    const Value* const type = schema->find("type");
    if (!type) continue;
    uint8_t own = 0;
    const auto add = [&](const Value& name) {
      const std::string& s = name.scalar;
      own |= s == "null"      ? uint8_t{null}
             : s == "boolean" ? uint8_t{boolean}
             : s == "integer" ? uint8_t{integer}
             : s == "number"  ? uint8_t{integer | fraction}
             : s == "string"  ? uint8_t{string}
             : s == "array"   ? uint8_t{array}
                              : uint8_t{object};
    };
    if (type->is_list())
      for (const Value& name : type->items) add(name);
    else
      add(*type);
    out &= own;
  }
  return out;
}

bool SchemaCompiler::any_has(const Way& way, std::initializer_list<std::string_view> keywords) {
  return std::ranges::any_of(way, [&](const Value* schema) {
    return std::ranges::any_of(keywords, [&](std::string_view keyword) { return schema->find(keyword) != nullptr; });
  });
}

ExprId SchemaCompiler::of_way(const Way& way, uint8_t allowed_types) {
  std::vector<ExprId> parts;
  if (const auto values = listed(way)) {
    for (const Value* value : *values)
      if (type_of(*value) & allowed_types) parts.push_back(literal(*value));
    return grammar_.choice(std::move(parts));
  }
  const uint8_t types = types_of(way) & allowed_types;
  const ValueForm& form = json_.strings().form();
  const auto word = [&](std::string_view text) { parts.push_back(grammar_.literal(std::string(text))); };
  if (types & null) word(form.null_word);
  if (types & boolean) word(form.true_word), word(form.false_word);
  if (types & (integer | fraction)) {
    const NumberLimits limits = number_limits(way, !(types & fraction));
    parts.push_back(limits.any() ? json_.number(limits.integer) : number_expr(grammar_, limits));
  }
  if (types & string) {
    const Counts length = counts(way, "minLength", "maxLength");
    if (any_has(way, {"pattern", "format"}))
      parts.push_back(json_.strings().of(texts_of(way)));
    else if (length.min == 0 && !length.max)
      parts.push_back(json_.strings().any());
    else if (length.possible())
      parts.push_back(json_.strings().of_length(length.min, length.max));
  }
  if (types & array) parts.push_back(array_expr(way));
  if (types & object) parts.push_back(object_expr(way));
  return grammar_.choice(std::move(parts));
}

uint8_t SchemaCompiler::type_of(const Value& value) {
  switch (value.kind) {
    case Value::Kind::null:
      return null;
    case Value::Kind::text:
      return string;
    case Value::Kind::list:
      return array;
    case Value::Kind::map:
      return object;
    case Value::Kind::plain:
      break;
  }
  if (value.as_bool()) return boolean;
  return value.scalar.find_first_of(".eE") == std::string::npos ? integer : fraction;
}

// Recursion: as deep as the value, which is a part of the schema's document.
ExprId SchemaCompiler::literal(const Value& value) {
  switch (value.kind) {
    case Value::Kind::null:
      return grammar_.literal(std::string(json_.strings().form().null_word));
    case Value::Kind::text:
      return json_.strings().literal(value.scalar);
    case Value::Kind::plain:
      if (const std::optional<bool> truth = value.as_bool())
        return grammar_.literal(
            std::string(*truth ? json_.strings().form().true_word : json_.strings().form().false_word));
      if (!Decimal::parse(value.scalar)) document_.fail(value, "", "'" + value.scalar + "' is not a number of JSON");
      return grammar_.literal(value.scalar);
    case Value::Kind::list:
    case Value::Kind::map:
      break;
  }
  std::vector<ExprId> parts = {json_.mark(value.is_list() ? "[" : "{")};
  for (const Value& item : value.items) {
    if (parts.size() > 1) parts.push_back(json_.mark(","));
    parts.push_back(grammar_.sequence({literal(item), json_.blanks()}));
  }
  for (const auto& [name, item] : value.entries) {
    if (parts.size() > 1) parts.push_back(json_.mark(","));
    parts.push_back(json_.pair(json_.name(name), literal(item)));
  }
  parts.push_back(grammar_.literal(value.is_list() ? "]" : "}"));
  return grammar_.sequence(std::move(parts));
}

NumberLimits SchemaCompiler::number_limits(const Way& way, bool integers_only) {
  NumberLimits out;
  out.integer = integers_only;
  for (const Value* schema : way) {
    const auto read = [&](const char* keyword) {
      const Value* const value = schema->find(keyword);
      return value ? Decimal::parse(value->scalar) : std::nullopt;
    };
    for (const bool strict : {false, true}) {
      const auto min = read(strict ? "exclusiveMinimum" : "minimum");
      if (min && (!out.min || *min > *out.min || (*min == *out.min && strict))) out.min = min, out.above_min = strict;
      const auto max = read(strict ? "exclusiveMaximum" : "maximum");
      if (max && (!out.max || *max < *out.max || (*max == *out.max && strict))) out.max = max, out.below_max = strict;
    }
    if (const Value* const multiple = schema->find("multipleOf")) {
      constexpr int64_t max_multiple = 1'000'000;
      const int64_t own = *multiple->as_int();
      if (own <= max_multiple) out.multiple_of = out.multiple_of ? std::lcm(out.multiple_of, own) : own;
      if (own > max_multiple || out.multiple_of > max_multiple)
        document_.fail(*schema, "multipleOf", str("is more than ", max_multiple, ", by itself or with others"),
                       "lower it, or leave it out");
    }
  }
  if (out.multiple_of) out.integer = true;
  if (out.multiple_of == 1) out.multiple_of = 0;
  return out;
}

SchemaCompiler::Counts SchemaCompiler::counts(const Way& way, std::string_view min, std::string_view max) {
  Counts out;
  for (const Value* schema : way) {
    if (const Value* const value = schema->find(min)) out.min = std::max(out.min, *value->as_int());
    if (const Value* const value = schema->find(max)) out.max = std::min(out.max.value_or(INT64_MAX), *value->as_int());
  }
  return out;
}

const CharDfa& SchemaCompiler::pattern(const Value& owner, std::string_view keyword, const std::string& text) {
  const auto known = patterns_.find({std::string(keyword), text});
  if (known != patterns_.end()) return known->second;
  Work& work = grammar_.work();
  CharDfa made;
  if (keyword == "format") {
    auto texts = format_texts(text, work);
    if (!texts)
      document_.fail(owner, keyword, "the format '" + text + "' is not supported",
                     "supported: " + known_formats() + "; leave it out, or write a pattern");
    made = *std::move(texts);
  } else {
    made = CharDfa::of(parse_pattern(text, "JSON schema at " + document_.pointer(owner, keyword), work), true, work);
  }
  return patterns_.emplace(std::pair(keyword, text), std::move(made)).first->second;
}

CharDfa SchemaCompiler::texts_of(const Way& way) {
  Work& work = grammar_.work();
  std::optional<CharDfa> out;
  const auto also = [&](const CharDfa& texts) { out = out ? out->join(texts, CharDfa::Join::both, work) : texts; };
  for (const Value* schema : way)
    for (const char* keyword : {"pattern", "format"})
      if (const Value* const text = schema->find(keyword)) also(pattern(*schema, keyword, text->scalar));
  const Counts length = counts(way, "minLength", "maxLength");
  if (!length.possible()) return CharDfa::words({}, work);
  if (length.min > 0 || length.max) also(CharDfa::length(length.min, length.max, work));
  return out ? *std::move(out) : CharDfa::any();
}

CharDfa SchemaCompiler::names_of(const Value& schema) {
  CharDfa out = CharDfa::words({}, grammar_.work());
  bool possible = true;
  Schemas schemas;
  add(schemas, schema, possible);
  return possible ? strings_of(schemas) : out;
}

CharDfa SchemaCompiler::strings_of(const Schemas& schemas) {
  Work& work = grammar_.work();
  CharDfa out = CharDfa::words({}, work);
  for (const Way& way : ways(schemas)) {
    if (!(types_of(way) & string)) continue;
    CharDfa texts;
    if (const auto values = listed(way)) {
      std::vector<std::string> words;
      for (const Value* value : *values)
        if (value->is_text()) words.push_back(value->scalar);
      texts = CharDfa::words(words, work);
    } else {
      texts = texts_of(way);
    }
    out = out.join(texts, CharDfa::Join::either, work);
  }
  return out;
}

}  // namespace easydel::text::constrain
