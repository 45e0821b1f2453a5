// The syntax tree of a template: expressions and statements.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "easydel/text/jinja/value.h"

namespace easydel::text::jinja {

struct Expression;
struct Statement;
using ExpressionPtr = std::unique_ptr<const Expression>;
using Body = std::vector<std::unique_ptr<const Statement>>;

struct Expression {
  enum class Kind : uint8_t {
    constant,  // value
    name,      // text
    list,
    tuple,      // children
    dict,       // children: key, value, key, value ...
    attribute,  // children[0].text
    item,       // children[0][children[1]]
    slice,      // children[0][children[1]:children[2]:children[3]], null if omitted
    call,       // children[0](arguments)
    filter,     // children[0] | text(arguments); children[0] is null at the start of a filter block
    test,       // children[0] is text(arguments)
    negate,
    plus,
    not_,  // children[0]
    and_,
    or_,          // children[0], children[1]
    binary,       // children[0] text children[1]
    concat,       // children, joined by ~
    compare,      // children[0] (operators[i] children[i + 1]) ...
    conditional,  // children[0] if children[1] else children[2] (null: undefined)
  };
  struct Argument {
    enum class How : uint8_t { positional, named, list, dict } how = How::positional;
    std::string name;
    ExpressionPtr value;
  };

  Kind kind;
  int line = 0, column = 0;
  std::string text;
  Var value;
  std::vector<ExpressionPtr> children;
  std::vector<std::string> operators;
  std::vector<Argument> arguments;
};

// The target of an assignment: a name, an attribute of a namespace, or several of these.
struct Target {
  std::string name, attribute;
  std::vector<Target> parts;
};

struct Macro {
  std::string name;
  std::vector<std::string> parameters;
  std::vector<ExpressionPtr> defaults;  // of the last parameters
  Body body;
  bool uses_varargs = false, uses_kwargs = false, uses_caller = false;
};

struct Statement {
  enum class Kind : uint8_t {
    data,        // text
    output,      // expression
    if_,         // branches in order; a null condition is else
    for_,        // target in expression if condition: body else otherwise
    set,         // target = expression
    set_block,   // target = body, through expression (a filter chain) if there is one
    macro,       // macro
    call,        // expression (a call) with macro as its caller
    filter,      // body through expression
    with,        // targets = values: body
    generation,  // body
    block,       // text (its name): body
    autoescape,  // if expression is true, the results of {{ }} in body are escaped
    break_,
    continue_,
  };

  Kind kind;
  int line = 0, column = 0;
  std::string text;
  ExpressionPtr expression, condition;
  Target target;
  bool recursive = false;
  bool scoped = false, required = false;  // of a block
  Body body, otherwise;
  std::vector<std::pair<ExpressionPtr, Body>> branches;
  std::vector<std::pair<Target, ExpressionPtr>> bindings;
  std::shared_ptr<const Macro> macro;
};

struct Template {
  std::string name;
  Body body;
  bool has_generation_blocks = false;
  std::vector<const Statement*> blocks;  // at any depth
};

// UserError "name:line:column: ...": a syntax error.
Template parse(std::string_view source, const std::string& name);

}  // namespace easydel::text::jinja
