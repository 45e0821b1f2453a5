// Jinja2's tests (tests.py), the names after `is`.
#include "easydel/text/jinja/interpreter.h"
#include "easydel/text/jinja/parser.h"
#include "easydel/text/jinja/strings.h"

namespace easydel::text::jinja {
namespace {

const Var& first(const Arguments& arguments) {
  if (arguments.positional.empty()) fail("the test needs an argument");
  return arguments.positional[0];
}

bool is_sequence(const Var& v) {
  return v.is_undefined() || v.is_string() || v.is_array() || v.is_dict() ||
         (v.is_view() && v.as_view().kind == "range");
}

bool hashable(const Var& v) {
  if (v.type() == Var::Type::list || v.is_dict()) fail("unhashable type: '", type_name(v), "'");
  return true;
}

Var rest_of_two(const Var& v) { return binary("%", v, Var::integer(2)); }

const NamedTest tests[] = {
    {"boolean", [](Interpreter&, const Var& v, const Arguments&) { return v.type() == Var::Type::boolean; }},
    {"callable",
     [](Interpreter&, const Var& v, const Arguments&) {
       return v.is_undefined() || (v.is_object() && v.as_object().callable());  // Python's Undefined has __call__
     }},
    {"defined", [](Interpreter&, const Var& v, const Arguments&) { return !v.is_undefined(); }},
    {"divisibleby",
     [](Interpreter&, const Var& v, const Arguments& a) { return equal(binary("%", v, first(a)), Var::integer(0)); }},
    {"eq", [](Interpreter&, const Var& v, const Arguments& a) { return equal(v, first(a)); }},
    {"escaped", [](Interpreter&, const Var& v, const Arguments&) { return v.is_markup(); }},
    {"even", [](Interpreter&, const Var& v, const Arguments&) { return equal(rest_of_two(v), Var::integer(0)); }},
    {"false",
     [](Interpreter&, const Var& v, const Arguments&) { return v.type() == Var::Type::boolean && !v.as_bool(); }},
    {"filter", [](Interpreter&, const Var& v,
                  const Arguments&) { return hashable(v) && v.is_string() && find_filter(v.as_string()); }},
    {"float", [](Interpreter&, const Var& v, const Arguments&) { return v.type() == Var::Type::number; }},
    {"ge", [](Interpreter&, const Var& v, const Arguments& a) { return less(first(a), v) || equal(v, first(a)); }},
    {"gt", [](Interpreter&, const Var& v, const Arguments& a) { return less(first(a), v); }},
    {"in", [](Interpreter&, const Var& v, const Arguments& a) { return contains(first(a), v); }},
    {"integer", [](Interpreter&, const Var& v, const Arguments&) { return v.type() == Var::Type::integer; }},
    {"iterable", [](Interpreter&, const Var& v, const Arguments&) { return is_sequence(v) || v.is_view(); }},
    {"le", [](Interpreter&, const Var& v, const Arguments& a) { return less(v, first(a)) || equal(v, first(a)); }},
    {"lower",
     [](Interpreter&, const Var& v, const Arguments&) {
       std::string text = to_text(v);
       return text == lower(text) && text != upper(text);
     }},
    {"lt", [](Interpreter&, const Var& v, const Arguments& a) { return less(v, first(a)); }},
    {"mapping", [](Interpreter&, const Var& v, const Arguments&) { return v.is_dict(); }},
    {"ne", [](Interpreter&, const Var& v, const Arguments& a) { return !equal(v, first(a)); }},
    {"none", [](Interpreter&, const Var& v, const Arguments&) { return v.is_none(); }},
    {"number", [](Interpreter&, const Var& v, const Arguments&) { return v.is_numeric(); }},
    {"odd", [](Interpreter&, const Var& v, const Arguments&) { return equal(rest_of_two(v), Var::integer(1)); }},
    {"sameas",
     [](Interpreter&, const Var& v, const Arguments& a) {
       const Var& other = first(a);
       return v.type() == other.type() && (v.identity() ? v.identity() == other.identity() : equal(v, other));
     }},
    {"sequence", [](Interpreter&, const Var& v, const Arguments&) { return is_sequence(v); }},
    {"string", [](Interpreter&, const Var& v, const Arguments&) { return v.is_string(); }},
    {"test", [](Interpreter&, const Var& v,
                const Arguments&) { return hashable(v) && v.is_string() && find_test(v.as_string()); }},
    {"true",
     [](Interpreter&, const Var& v, const Arguments&) { return v.type() == Var::Type::boolean && v.as_bool(); }},
    {"undefined", [](Interpreter&, const Var& v, const Arguments&) { return v.is_undefined(); }},
    {"upper",
     [](Interpreter&, const Var& v, const Arguments&) {
       std::string text = to_text(v);
       return text == upper(text) && text != lower(text);
     }},
};

constexpr std::pair<std::string_view, std::string_view> aliases[] = {
    {"==", "eq"}, {"equalto", "eq"}, {"!=", "ne"}, {">", "gt"},        {"greaterthan", "gt"},
    {">=", "ge"}, {"<", "lt"},       {"<=", "le"}, {"lessthan", "lt"},
};

}  // namespace

const NamedTest* find_test(std::string_view name) {
  for (auto& [alias, canonical] : aliases)
    if (alias == name) name = canonical;
  for (const NamedTest& row : tests)
    if (row.name == name) return &row;
  return nullptr;
}

bool has_test(std::string_view name) { return find_test(name) != nullptr; }

}  // namespace easydel::text::jinja
