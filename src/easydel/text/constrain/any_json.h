// JSON without a schema, and what all JSON values share: white space, numbers, pairs of a name and a value.
#pragma once

#include <optional>
#include <string_view>
#include <utility>

#include "easydel/text/constrain/grammar.h"
#include "easydel/text/constrain/json_strings.h"

namespace easydel::text::constrain {

// The names that every format can write bare.
CharDfa bare_names(Work& work);

class AnyJson {
 public:
  explicit AnyJson(Grammar& grammar, ValueForm form = {}) : grammar_(grammar), strings_(grammar, std::move(form)) {}

  JsonStrings& strings() { return strings_; }
  ExprId value() { return grammar_.call(rules().value); }
  ExprId object() { return grammar_.call(rules().object); }
  ExprId array() { return grammar_.call(rules().array); }
  ExprId number(bool integer);
  ExprId blanks();                         // at most max_blanks
  ExprId mark(const char* text);           // and the white space behind it
  ExprId pair(ExprId name, ExprId value);  // and the white space behind it
  // Names of members: strings, or bare where strings have quotes of their own. never(): it cannot be written.
  ExprId name(std::string_view text);
  ExprId name_of(const std::optional<CharDfa>& texts);  // nullopt: any
  RuleId object_rule() { return rules().object; }

 private:
  bool is_quoted() const { return !strings_.form().quote.empty(); }
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
