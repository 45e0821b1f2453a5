// Evaluates expressions, and looks up attributes and items (Jinja2's environment.py).
#include "easydel/text/jinja/filters.h"
#include "easydel/text/jinja/interpreter.h"

namespace easydel::text::jinja {
namespace {

[[noreturn]] void fail_undefined(const Var& value) {
  fail(value.as_string().empty() ? "a value is undefined" : value.as_string());
}

std::string described(const Var& object) { return object.is_none() ? "None" : type_name(object) + " object"; }

Var no_attribute(const Var& object, std::string_view name) {
  return Var::undefined("'" + described(object) + "' has no attribute " + repr(Var::string(std::string(name))));
}

const Var* element(const Var& array, int64_t index) {
  const auto& items = array.items();
  auto n = int64_t(items.size());
  if (index < 0) index += n;
  return index < 0 || index >= n ? nullptr : &items[index];
}

// Methods that modify their object, which the immutable sandbox refuses.
bool is_mutating(const Var& object, std::string_view name) {
  auto any = [&](std::initializer_list<std::string_view> words) {
    for (std::string_view word : words)
      if (word == name) return true;
    return false;
  };
  if (object.type() == Var::Type::list)
    return any({"append", "clear", "pop", "reverse", "insert", "sort", "extend", "remove"});
  if (object.is_dict()) return any({"clear", "pop", "popitem", "setdefault", "update"});
  return false;
}

Var unsafe(std::string name, const Var& object) {
  std::string text = str("access to attribute '", name, "' of '", type_name(object), "' object is unsafe.");
  return Var::undefined(text);
}

}  // namespace

Var Interpreter::made(Var value) {
  if (value.is_string())
    step(value.as_string().size() / 64);
  else if (value.is_array())
    step(value.items().size() / 4);
  return value;
}

Var Interpreter::evaluate(const Expression& expression, const ScopePtr& scope) {
  using Kind = Expression::Kind;
  step();
  if (++depth_ > 700) fail("the template goes too deep (endless recursion?)");
  struct Back {
    int& depth;
    ~Back() { --depth; }
  } back{depth_};
  if (expression.line) line_ = expression.line, column_ = expression.column;
  auto child = [&](size_t i) { return evaluate(*expression.children[i], scope); };
  switch (expression.kind) {
    case Kind::constant:
      return expression.value;
    case Kind::name:
      return evaluate_name(expression, scope);
    case Kind::list:
    case Kind::tuple: {
      std::vector<Var> items;
      for (size_t i = 0; i < expression.children.size(); ++i) items.push_back(child(i));
      return expression.kind == Kind::list ? Var::list(std::move(items)) : Var::tuple(std::move(items));
    }
    case Kind::dict: {
      DictData entries;
      for (size_t i = 0; i + 1 < expression.children.size(); i += 2) {
        Var key = child(i);
        entries.set(std::move(key), child(i + 1));
      }
      return Var::dict(std::move(entries));
    }
    case Kind::attribute:
      return attribute(child(0), expression.text);
    case Kind::item: {
      Var object = child(0);
      return item(object, child(1));
    }
    case Kind::slice: {
      Var object = child(0), parts[3];
      const Var* given[3] = {};
      for (size_t i = 0; i < 3; ++i)
        if (expression.children[i + 1]) {
          parts[i] = child(i + 1);
          if (!parts[i].is_none()) given[i] = &parts[i];
        }
      if (object.is_undefined()) fail_undefined(object);
      return made(slice(object, given[0], given[1], given[2]));
    }
    case Kind::call:
      return made(evaluate_call(expression, scope, nullptr));
    case Kind::filter:
      return made(evaluate_filter(expression, scope, nullptr));
    case Kind::test: {
      Var value = child(0);
      return Var::boolean(test(expression.text, value, evaluate_arguments(expression, scope)));
    }
    case Kind::negate:
    case Kind::plus: {
      Var value = child(0);
      if (value.is_undefined()) fail_undefined(value);
      if (!value.is_numeric())
        fail("bad operand type for unary ", expression.kind == Kind::negate ? "-" : "+", ": '", type_name(value), "'");
      if (value.type() == Var::Type::number)
        return Var::number(expression.kind == Kind::plus ? value.as_number() : -value.as_number());
      return binary(expression.kind == Kind::plus ? "+" : "-", Var::integer(0), value);
    }
    case Kind::not_:
      return Var::boolean(!child(0).truth());
    case Kind::and_: {
      Var left = child(0);
      return left.truth() ? child(1) : left;
    }
    case Kind::or_: {
      Var left = child(0);
      return left.truth() ? left : child(1);
    }
    case Kind::binary: {
      Var left = child(0);
      Var right = child(1);
      return made(binary(expression.text, left, right));
    }
    case Kind::concat: {
      // With autoescaping, operands next to a Markup are escaped (markup_join).
      std::string out, raw;
      bool markup = false;
      for (size_t i = 0; i < expression.children.size(); ++i) {
        Var part = child(i);
        markup = markup || part.is_markup();
        raw += to_text(part);
        if (autoescapes_) out += part.is_markup() ? part.as_string() : escape(to_text(part));
        check_size(raw.size() + out.size());
      }
      return made(autoescapes_ && markup ? Var::string(std::move(out), true) : Var::string(std::move(raw)));
    }
    case Kind::compare:
      return evaluate_compare(expression, scope);
    case Kind::conditional:
      if (child(1).truth()) return child(0);
      if (expression.children[2]) return child(2);
      return Var::undefined("the inline if-expression evaluated to false and no else section was defined.");
  }
  return Var();
}

Var Interpreter::evaluate_name(const Expression& expression, const ScopePtr& scope) {
  for (const Scope* at = scope.get(); at; at = at->outer.get())
    if (const Var* value = at->find_here(expression.text)) return *value;
  return Var::undefined("'" + expression.text + "' is undefined");
}

Var Interpreter::evaluate_compare(const Expression& expression, const ScopePtr& scope) {
  Var left = evaluate(*expression.children[0], scope);
  for (size_t i = 0; i < expression.operators.size(); ++i) {
    Var right = evaluate(*expression.children[i + 1], scope);
    const std::string& operation = expression.operators[i];
    bool holds = false;
    if (operation == "==") holds = equal(left, right);
    if (operation == "!=") holds = !equal(left, right);
    if (operation == "<") holds = less(left, right);
    if (operation == ">") holds = less(right, left);
    if (operation == "<=") holds = less(left, right) || equal(left, right);
    if (operation == ">=") holds = less(right, left) || equal(left, right);
    if (operation == "in") holds = contains(right, left);
    if (operation == "not in") holds = !contains(right, left);
    if (!holds) return Var::boolean(false);
    left = std::move(right);
  }
  return Var::boolean(true);
}

Arguments Interpreter::evaluate_arguments(const Expression& expression, const ScopePtr& scope) {
  using How = Expression::Argument::How;
  Arguments out;
  for (auto& argument : expression.arguments) {
    Var value = evaluate(*argument.value, scope);
    switch (argument.how) {
      case How::positional:
        out.positional.push_back(std::move(value));
        break;
      case How::named:
        out.named.emplace_back(argument.name, std::move(value));
        break;
      case How::list:
        for (Var& item : iterate(value)) out.positional.push_back(std::move(item));
        break;
      case How::dict:
        if (!value.is_dict()) fail("argument after ** must be a mapping, not ", type_name(value));
        for (auto& [key, item] : value.as_dict().entries) out.named.emplace_back(to_text(key), item);
        break;
    }
  }
  return out;
}

Var Interpreter::evaluate_call(const Expression& expression, const ScopePtr& scope, const Var* caller) {
  Var function = evaluate(*expression.children[0], scope);
  Arguments arguments = evaluate_arguments(expression, scope);
  if (caller) arguments.named.emplace_back("caller", *caller);
  return call(function, arguments);
}

Var Interpreter::call(const Var& function, const Arguments& arguments) {
  if (function.is_undefined()) fail_undefined(function);
  if (!function.is_object()) fail("'", type_name(function), "' object is not callable");
  step(4);
  Var held = function;  // keeps it alive: a namespace may release it during the call
  return held.as_object().call(*this, arguments);
}

Var Interpreter::evaluate_filter(const Expression& expression, const ScopePtr& scope, const Var* head) {
  Var value;
  if (!expression.children[0])
    value = *head;
  else if (head)  // a filter chain on a block: only its innermost filter has no operand
    value = evaluate_filter(*expression.children[0], scope, head);
  else
    value = evaluate(*expression.children[0], scope);
  return filter(expression.text, value, evaluate_arguments(expression, scope));
}

Var Interpreter::filter(std::string_view name, const Var& value, const Arguments& arguments) {
  const NamedFilter* found = find_filter(name);
  if (!found) fail("No filter named '", name, "' found.");
  check_filter_arguments(found->name, arguments);
  return found->run(*this, value, arguments);
}

bool Interpreter::test(std::string_view name, const Var& value, const Arguments& arguments) {
  const NamedTest* found = find_test(name);
  if (!found) fail("No test named '", name, "' found.");
  check_test_arguments(found->name, arguments);
  return found->run(*this, value, arguments);
}

Var Interpreter::attribute(const Var& object, std::string_view name) {
  // Attributes that every Python object has: the sandbox hides them, even for undefined values.
  if (object.is_undefined() && name == "__class__") return unsafe(std::string(name), object);
  if (object.is_undefined()) fail_undefined(object);
  if (is_mutating(object, name)) return unsafe(std::string(name), object);
  if (object.is_object()) {
    if (auto value = object.as_object().attribute(name)) return *value;
  } else {
    if (auto value = method(object, name)) return *value;
    if (object.is_integral()) {
      if (name == "real" || name == "numerator") return Var::integer(object.as_integer());
      if (name == "imag" || name == "denominator") return Var::integer(name == "denominator");
    }
    if (object.type() == Var::Type::number && (name == "real" || name == "imag"))
      return Var::number(name == "real" ? object.as_number() : 0.0);
    // Groups of groupby are named tuples.
    if (object.type() == Var::Type::tuple && object.items().size() == 2 && (name == "grouper" || name == "list"))
      return object.items()[name == "list"];
    if (object.is_dict())
      if (const Var* value = object.as_dict().find(name)) return *value;
  }
  return no_attribute(object, name);
}

Var Interpreter::item(const Var& object, const Var& index) {
  if (object.is_undefined()) fail_undefined(object);
  if (object.is_array() && index.is_integral()) {
    if (const Var* value = element(object, index.as_integer())) return *value;
    return Var::undefined(described(object) + " has no element " + to_text(index));
  }
  if (object.is_view() && object.as_view().kind == "range" && index.is_integral())
    return item(Var::list(object.as_view().items), index);
  if (object.is_string() && index.is_integral()) {
    int64_t n = length(object), i = index.as_integer();
    if (i < 0) i += n;
    if (i < 0 || i >= n) return Var::undefined(described(object) + " has no element " + to_text(index));
    Var begin = Var::integer(i), end = Var::integer(i + 1);
    return slice(object, &begin, &end, nullptr);
  }
  if (object.is_dict() && index.type() != Var::Type::list && !index.is_dict())
    if (const Var* value = object.as_dict().find(index)) return *value;
  if (index.is_string()) {
    if (is_mutating(object, index.as_string())) return unsafe(index.as_string(), object);
    if (object.is_object()) {
      if (auto value = object.as_object().attribute(index.as_string())) return *value;
    } else if (auto value = method(object, index.as_string())) {
      return *value;
    }
    return no_attribute(object, index.as_string());
  }
  return Var::undefined(described(object) + " has no element " + repr(index));
}

}  // namespace easydel::text::jinja
