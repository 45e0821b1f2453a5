// JSON without a schema, and what all JSON values share: white space, numbers, pairs of a name and a value.
#pragma once

#include <optional>

#include "easydel/text/constrain/grammar.h"
#include "easydel/text/constrain/json_strings.h"

namespace easydel::text::constrain {

class AnyJson {
 public:
  explicit AnyJson(Grammar& grammar) : grammar_(grammar), strings_(grammar) {}

  JsonStrings& strings() { return strings_; }
  ExprId value() { return grammar_.call(rules().value); }
  ExprId object() { return grammar_.call(rules().object); }
  ExprId array() { return grammar_.call(rules().array); }
  ExprId number(bool integer);
  ExprId blanks();                         // at most max_blanks
  ExprId mark(const char* text);           // and the white space behind it
  ExprId pair(ExprId name, ExprId value);  // and the white space behind it
  RuleId object_rule() { return rules().object; }

 private:
  struct Rules {
    RuleId value, object, array;
  };
  const Rules& rules();

  Grammar& grammar_;
  JsonStrings strings_;
  std::optional<Rules> rules_;
  std::optional<ExprId> blanks_;
  std::optional<RuleId> integer_, number_;
};

}  // namespace easydel::text::constrain
