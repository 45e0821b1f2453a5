// The parser of expressions; parser.cpp adds statements.
#pragma once

#include <initializer_list>

#include "easydel/text/jinja/ast.h"
#include "easydel/text/jinja/lexer.h"

namespace easydel::text::jinja {

// Jinja2's grammar of expressions (parser.py).
class ExpressionParser {
 protected:
  using Kind = Lexeme::Kind;
  ExpressionParser(std::vector<Lexeme> tokens, std::string name) : tokens_(std::move(tokens)), name_(std::move(name)) {}

  const Lexeme& current() const { return tokens_[at_]; }
  const Lexeme& next() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  bool is_symbol(std::string_view text) const { return current().kind == Kind::symbol && current().text == text; }
  bool is_name(std::string_view text) const { return current().kind == Kind::name && current().text == text; }
  bool take_symbol(std::string_view text);
  bool take_name(std::string_view text);
  void expect_symbol(std::string_view text);
  std::string expect_name();
  [[noreturn]] void wrong(const std::string& what, const std::string& remedy = "") const;
  [[noreturn]] void unexpected(const std::string& expected) const;

  ExpressionPtr expression() { return conditional(); }
  // Parses `a` or `a, b`. `with_condition` false: does not consume an `if`. A name in `enders` ends it, too.
  ExpressionPtr tuple(bool with_condition = true, std::initializer_list<std::string_view> enders = {},
                      bool in_parentheses = false);
  ExpressionPtr filters(ExpressionPtr inner, bool only_first);  // parses what follows '|'; `inner` may be null
  ExpressionPtr primary();
  ExpressionPtr postfix(ExpressionPtr inner);
  void call_arguments(std::vector<Expression::Argument>& out);

  std::vector<Lexeme> tokens_;
  std::string name_;
  size_t at_ = 0;
  int depth_ = 0;
  // True inside conditions, where an unknown filter or test is an error only when it is evaluated.
  bool soft_ = false;
  // Unknown names found so far, by position: only a later `if` shows whether one is conditional.
  std::vector<std::pair<size_t, std::string>> unknown_;

 private:
  struct Deeper;
  std::unique_ptr<Expression> make(Expression::Kind kind) const;
  ExpressionPtr conditional();
  ExpressionPtr or_();
  ExpressionPtr and_();
  ExpressionPtr not_();
  ExpressionPtr compare();
  ExpressionPtr sum();
  ExpressionPtr concat();
  ExpressionPtr product();
  ExpressionPtr power();
  ExpressionPtr unary(bool with_filters = true);
  ExpressionPtr subscript(ExpressionPtr inner);
  ExpressionPtr test(ExpressionPtr inner);
  ExpressionPtr list();
  ExpressionPtr dict();
};

bool has_filter(std::string_view name);
bool has_test(std::string_view name);

}  // namespace easydel::text::jinja
