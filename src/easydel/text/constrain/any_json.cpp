#include "easydel/text/constrain/any_json.h"

#include <string>

#include "easydel/text/constrain/json_numbers.h"
#include "easydel/text/constrain/pattern.h"
#include "easydel/text/constrain/schema.h"

namespace easydel::text::constrain {

CharDfa bare_names(Work& work) {
  return CharDfa::of(parse_pattern("[A-Za-z_][A-Za-z0-9_]{0,63}", "name", work), false, work);
}

ExprId AnyJson::blanks() {
  if (is_quoted()) return grammar_.nothing();
  if (!blanks_) blanks_ = grammar_.repeat(grammar_.chars(CharSet::of(" \t\n\r")), 0, max_blanks);
  return *blanks_;
}

ExprId AnyJson::mark(const char* text) { return grammar_.sequence({grammar_.literal(text), blanks()}); }

ExprId AnyJson::name(std::string_view text) {
  if (!is_quoted()) return strings_.literal(text);
  const bool bare = !text.empty() && text.find_first_of("{}[]:,\"<>\r\n\t ") == std::string_view::npos;
  return bare ? grammar_.literal(std::string(text)) : grammar_.never();
}

ExprId AnyJson::name_of(const std::optional<CharDfa>& texts) {
  if (!is_quoted()) return texts ? strings_.of(*texts) : strings_.any();
  Work& work = grammar_.work();
  const CharDfa bare = bare_names(work);
  const CharDfa written = texts ? bare.join(*texts, CharDfa::Join::both, work) : bare;
  return written.empty() ? grammar_.never() : plain_texts(written, grammar_);
}

ExprId AnyJson::pair(ExprId name, ExprId value) {
  return grammar_.sequence({name, blanks(), mark(":"), value, blanks()});
}

ExprId AnyJson::number(bool integer) {
  std::optional<RuleId>& rule = integer ? integer_ : number_;
  if (!rule) {
    rule = grammar_.add_rule(integer ? "integer" : "number", true);
    NumberLimits limits;
    limits.integer = integer;
    grammar_.define(*rule, number_expr(grammar_, limits));
  }
  return grammar_.call(*rule);
}

const AnyJson::Rules& AnyJson::rules() {
  if (rules_) return *rules_;
  rules_ = {grammar_.add_rule("value"), grammar_.add_rule("object"), grammar_.add_rule("array")};
  const ValueForm& form = strings_.form();
  const auto word = [&](std::string_view text) { return grammar_.literal(std::string(text)); };
  const auto list = [&](const char* open, ExprId item, const char* close) {
    const ExprId more = grammar_.repeat(grammar_.sequence({mark(","), item}), 0, -1);
    return grammar_.sequence({mark(open), grammar_.optional(grammar_.sequence({item, more})), grammar_.literal(close)});
  };
  grammar_.define(rules_->value, grammar_.choice({object(), array(), strings_.any(), number(false),
                                                  word(form.true_word), word(form.false_word), word(form.null_word)}));
  grammar_.define(rules_->object, list("{", pair(name_of(std::nullopt), value()), "}"));
  grammar_.define(rules_->array, list("[", grammar_.sequence({value(), blanks()}), "]"));
  return *rules_;
}

RuleId any_object(const ValueForm& form, Grammar& grammar) { return AnyJson(grammar, form).object_rule(); }

}  // namespace easydel::text::constrain
