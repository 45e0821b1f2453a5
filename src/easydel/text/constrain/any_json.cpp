#include "easydel/text/constrain/any_json.h"

#include "easydel/text/constrain/json_numbers.h"
#include "easydel/text/constrain/schema.h"

namespace easydel::text::constrain {

ExprId AnyJson::blanks() {
  if (!blanks_) blanks_ = grammar_.repeat(grammar_.chars(CharSet::of(" \t\n\r")), 0, max_blanks);
  return *blanks_;
}

ExprId AnyJson::mark(const char* text) { return grammar_.sequence({grammar_.literal(text), blanks()}); }

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
  const auto list = [&](const char* open, ExprId item, const char* close) {
    const ExprId more = grammar_.repeat(grammar_.sequence({mark(","), item}), 0, -1);
    return grammar_.sequence({mark(open), grammar_.optional(grammar_.sequence({item, more})), grammar_.literal(close)});
  };
  grammar_.define(rules_->value,
                  grammar_.choice({object(), array(), strings_.any(), number(false), grammar_.literal("true"),
                                   grammar_.literal("false"), grammar_.literal("null")}));
  grammar_.define(rules_->object, list("{", pair(strings_.any(), value()), "}"));
  grammar_.define(rules_->array, list("[", grammar_.sequence({value(), blanks()}), "]"));
  return *rules_;
}

RuleId any_object(Grammar& grammar) { return AnyJson(grammar).object_rule(); }

}  // namespace easydel::text::constrain
