// Arguments of calls in the notations of formats.
#include <algorithm>

#include "easydel/base/error.h"
#include "easydel/text/constrain/pattern.h"
#include "easydel/text/constrain/schema.h"
#include "easydel/text/constrain/schema_compiler.h"

namespace easydel::text::constrain {
namespace {

using Values = ArgumentNotation::Values;

ValueForm form_of(const ArgumentNotation& notation) {
  switch (notation.values) {
    case Values::python:
      return {.null_word = "None", .true_word = "True", .false_word = "False", .escapes_slashes = false};
    case Values::quoted:
      return {.quote = notation.quote};
    case Values::tagged:
      break;
  }
  std::string begins;  // of what may not be in a value
  for (const std::string& stop : notation.stops)
    if (uint8_t(stop.front()) < 0x80) begins += stop.front();
  return {.escaped = CharSet::of(begins)};
}

CharDfa whole(const std::string& pattern, Work& work) {
  return CharDfa::of(parse_pattern(pattern, "text", work), false, work);
}

// Words in any case.
CharDfa any_case(const std::vector<std::string>& words, Work& work) {
  std::string pattern;
  for (const std::string& word : words) {
    if (!pattern.empty()) pattern += '|';
    for (const char c : word) pattern += {'[', c, char(c - 'a' + 'A'), ']'};
  }
  return whole("(?:" + pattern + ")", work);
}

bool can_be_named(const std::string& name) {
  return !name.empty() && name.front() != ' ' && name.back() != ' ' &&
         name.find_first_of("<>{}()[]\"'=:,\r\n\t") == std::string::npos;
}

}  // namespace

ArgumentType ArgumentNotation::type_of(std::string_view name) const {
  const auto at = std::ranges::find(types, name, &std::pair<std::string, ArgumentType>::first);
  return at == types.end() ? other_type : at->second;
}

std::string ArgumentNotation::key() const {
  std::string out = str(",", int(values), int(trims), int(any_text));
  const auto add = [&](std::string_view text) { out += str(",", text.size(), ":", text); };
  for (const std::string* const text : {&open, &between, &close, &quote}) add(*text);
  for (const auto* const texts : {&before_name, &after_name, &after_value, &before_text, &stops, &null_words}) {
    out += str(";", texts->size());
    for (const std::string& text : *texts) add(text);
  }
  const auto add_type = [&](const ArgumentType& type) {
    for (const bool flag : {type.string, type.integer, type.number, type.boolean, type.null, type.object, type.array})
      out += flag ? '1' : '0';
  };
  add_type(other_type);
  for (const auto& [name, type] : types) add(name), add_type(type);
  return out;
}

ExprId SchemaCompiler::pieces(const std::vector<std::string>& texts) {
  std::vector<ExprId> parts;
  for (const std::string& text : texts)
    if (!text.empty()) parts.push_back(marker_expr(text, grammar_));
  return grammar_.sequence(std::move(parts));
}

// The strings that can be written without quotes, and are read as strings.
CharDfa SchemaCompiler::bare_texts(const ArgumentNotation& notation, const Schemas& schemas, const ArgumentType& type) {
  using Join = CharDfa::Join;
  Work& work = grammar_.work();
  if (!bare_texts_) {
    bare_texts_ = texts_without(notation.stops, work);
    if (!notation.any_text && !notation.null_words.empty())
      bare_texts_ = bare_texts_->join(any_case(notation.null_words, work), Join::first_only, work);
    if (notation.trims)
      bare_texts_ = bare_texts_->join(whole("(?:[^ \\t\\r\\n](?:[\\s\\S]*[^ \\t\\r\\n])?)?", work), Join::both, work);
  }
  if (notation.any_text) return *bare_texts_;
  CharDfa out = bare_texts_->join(strings_of(schemas), Join::both, work);
  if (type.only_string()) return out;
  // A text that begins like this is neither a number nor an object or a list.
  out = out.join(whole("[A-Za-z_\u00a1-\U0010ffff][\\s\\S]*", work), Join::both, work);
  return out.join(any_case({"null", "none", "nil", "true", "false", "nan", "infinity"}, work), Join::first_only, work);
}

ExprId SchemaCompiler::argument(const ArgumentNotation& notation, ExprId name, const Schemas& schemas,
                                const ArgumentType& type) {
  const ExprId before = pieces(notation.before_name), after = pieces(notation.after_name),
               end = pieces(notation.after_value);
  if (notation.values != Values::tagged) return grammar_.sequence({before, name, after, value(schemas), end});
  std::vector<ExprId> ways_to_write;
  if (type.string) {
    const ExprId before_text = notation.before_text.empty() ? after : pieces(notation.before_text);
    if (const CharDfa texts = bare_texts(notation, schemas, type); !texts.empty())
      ways_to_write.push_back(grammar_.sequence({before, name, before_text, plain_texts(texts, grammar_), end}));
  }
  const auto allowed =
      uint8_t((type.null ? null : 0) | (type.boolean ? boolean : 0) | (type.integer || type.number ? integer : 0) |
              (type.number ? fraction : 0) | (type.array ? array : 0) | (type.object ? object : 0));
  if (allowed != 0 && !notation.any_text) {
    std::vector<ExprId> values;
    for (const Way& way : ways(schemas)) values.push_back(of_way(way, allowed));
    ways_to_write.push_back(grammar_.sequence({before, name, after, grammar_.choice(std::move(values)), end}));
  }
  return grammar_.choice(std::move(ways_to_write));
}

RuleId SchemaCompiler::compile_arguments(const ArgumentNotation& notation) {
  Work& work = grammar_.work();
  const MemberForm form{
      .open = pieces({notation.open}),
      .between = pieces({notation.between}),
      .close = pieces({notation.close}),
      .named =
          [&](const Property& own) {
            const ExprId name = can_be_named(own.name) ? grammar_.literal(own.name) : grammar_.never();
            return argument(notation, name, own.schemas, notation.type_of(own.name));
          },
      .other =
          [&](const Others& own) {
            // A reader may take these for all arguments in one.
            CharDfa names = bare_names(work).join(CharDfa::words({"arguments", "input", "properties"}, work),
                                                  CharDfa::Join::first_only, work);
            if (own.names) names = names.join(*own.names, CharDfa::Join::both, work);
            if (names.empty()) return grammar_.never();
            return argument(notation, plain_texts(names, grammar_), own.schemas, notation.other_type);
          }};
  const RuleId root = grammar_.add_rule("the arguments");
  std::vector<ExprId> parts;
  for (const Way& way : ways({&document_.root()})) {
    if (!(types_of(way) & object)) continue;
    if (listed(way))
      document_.fail(document_.root(), "", "lists whole values, which this format of calls cannot write",
                     "describe the arguments by properties");
    parts.push_back(members_expr(way, form));
  }
  grammar_.define(root, grammar_.choice(std::move(parts)));
  define_rules();
  return root;
}

RuleId read_arguments(std::string_view json, const ArgumentNotation& notation, Grammar& grammar) {
  SchemaDocument document(json);
  return SchemaCompiler(document, grammar, form_of(notation)).compile_arguments(notation);
}

}  // namespace easydel::text::constrain
