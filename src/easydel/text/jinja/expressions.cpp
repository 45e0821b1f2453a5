// Parses expressions.
#include <algorithm>
#include <charconv>

#include "easydel/text/jinja/parser.h"

namespace easydel::text::jinja {

// Nesting is limited so that hostile templates cannot exhaust the stack.
struct ExpressionParser::Deeper {
  ExpressionParser& parser;
  explicit Deeper(ExpressionParser& parser) : parser(parser) {
    if (++parser.depth_ > 150) parser.wrong("is nested too deeply");
  }
  ~Deeper() { --parser.depth_; }
};

void ExpressionParser::wrong(const std::string& what, const std::string& remedy) const {
  refuse(FilePlace{name_, current().line, current().column}, what, remedy);
}

void ExpressionParser::unexpected(const std::string& expected) const {
  std::string what;
  switch (current().kind) {
    case Kind::variable_end:
      what = "'}}'";
      break;
    case Kind::block_end:
      what = "'%}'";
      break;
    case Kind::end:
      what = "the end of the template";
      break;
    case Kind::text:
      what = "a string";
      break;
    default:
      what = "'" + current().text + "'";
  }
  wrong("unexpected " + what, expected.empty() ? "" : expected + " would fit");
}

bool ExpressionParser::take_symbol(std::string_view text) {
  if (!is_symbol(text)) return false;
  ++at_;
  return true;
}
bool ExpressionParser::take_name(std::string_view text) {
  if (!is_name(text)) return false;
  ++at_;
  return true;
}
void ExpressionParser::expect_symbol(std::string_view text) {
  if (!take_symbol(text)) unexpected(str("'", text, "'"));
}
std::string ExpressionParser::expect_name() {
  if (current().kind != Kind::name) unexpected("a name");
  return tokens_[at_++].text;
}

std::unique_ptr<Expression> ExpressionParser::make(Expression::Kind kind) const {
  auto out = std::make_unique<Expression>();
  out->kind = kind;
  out->line = current().line;
  out->column = current().column;
  return out;
}

ExpressionPtr ExpressionParser::conditional() {
  Deeper deeper(*this);
  const size_t known = unknown_.size();
  ExpressionPtr left = or_();
  while (is_name("if")) {
    auto out = make(Expression::Kind::conditional);
    unknown_.resize(known);
    ++at_;
    bool before = soft_;
    soft_ = true;
    ExpressionPtr condition = or_();
    ExpressionPtr otherwise = take_name("else") ? conditional() : nullptr;
    soft_ = before;
    out->children.push_back(std::move(left));
    out->children.push_back(std::move(condition));
    out->children.push_back(std::move(otherwise));
    left = std::move(out);
  }
  return left;
}

ExpressionPtr ExpressionParser::or_() {
  ExpressionPtr left = and_();
  while (is_name("or")) {
    auto out = make(Expression::Kind::or_);
    ++at_;
    out->children.push_back(std::move(left));
    out->children.push_back(and_());
    left = std::move(out);
  }
  return left;
}

ExpressionPtr ExpressionParser::and_() {
  ExpressionPtr left = not_();
  while (is_name("and")) {
    auto out = make(Expression::Kind::and_);
    ++at_;
    out->children.push_back(std::move(left));
    out->children.push_back(not_());
    left = std::move(out);
  }
  return left;
}

ExpressionPtr ExpressionParser::not_() {
  if (!is_name("not")) return compare();
  Deeper deeper(*this);
  auto out = make(Expression::Kind::not_);
  ++at_;
  out->children.push_back(not_());
  return out;
}

ExpressionPtr ExpressionParser::compare() {
  auto out = make(Expression::Kind::compare);
  ExpressionPtr first = sum();
  out->children.push_back(std::move(first));
  while (true) {
    std::string operation;
    if (current().kind == Kind::symbol) {
      for (std::string_view known : {"==", "!=", "<", "<=", ">", ">="})
        if (current().text == known) operation = known;
    } else if (is_name("in")) {
      operation = "in";
    } else if (is_name("not") && next().kind == Kind::name && next().text == "in") {
      operation = "not in";
      ++at_;
    }
    if (operation.empty()) break;
    ++at_;
    out->operators.push_back(operation);
    out->children.push_back(sum());
  }
  if (out->operators.empty()) return std::move(out->children[0]);
  return out;
}

ExpressionPtr ExpressionParser::sum() {
  ExpressionPtr left = concat();
  while (is_symbol("+") || is_symbol("-")) {
    auto out = make(Expression::Kind::binary);
    out->text = tokens_[at_++].text;
    out->children.push_back(std::move(left));
    out->children.push_back(concat());
    left = std::move(out);
  }
  return left;
}

ExpressionPtr ExpressionParser::concat() {
  ExpressionPtr first = product();
  if (!is_symbol("~")) return first;
  auto out = make(Expression::Kind::concat);
  out->children.push_back(std::move(first));
  while (take_symbol("~")) out->children.push_back(product());
  return out;
}

ExpressionPtr ExpressionParser::product() {
  ExpressionPtr left = power();
  while (is_symbol("*") || is_symbol("/") || is_symbol("//") || is_symbol("%")) {
    auto out = make(Expression::Kind::binary);
    out->text = tokens_[at_++].text;
    out->children.push_back(std::move(left));
    out->children.push_back(power());
    left = std::move(out);
  }
  return left;
}

ExpressionPtr ExpressionParser::power() {
  ExpressionPtr left = unary();
  while (is_symbol("**")) {
    auto out = make(Expression::Kind::binary);
    out->text = tokens_[at_++].text;
    out->children.push_back(std::move(left));
    out->children.push_back(unary());
    left = std::move(out);
  }
  return left;
}

ExpressionPtr ExpressionParser::unary(bool with_filters) {
  Deeper deeper(*this);
  ExpressionPtr out;
  if (is_symbol("-") || is_symbol("+")) {
    auto sign = make(is_symbol("-") ? Expression::Kind::negate : Expression::Kind::plus);
    ++at_;
    sign->children.push_back(unary(false));
    out = std::move(sign);
  } else {
    out = primary();
  }
  out = postfix(std::move(out));
  return with_filters ? filters(std::move(out), false) : std::move(out);
}

ExpressionPtr ExpressionParser::primary() {
  Deeper deeper(*this);
  auto out = make(Expression::Kind::constant);
  const Lexeme token = current();
  switch (token.kind) {
    case Kind::name:
      ++at_;
      if (token.text == "true" || token.text == "True" || token.text == "false" || token.text == "False") {
        out->value = Var::boolean(token.text == "true" || token.text == "True");
      } else if (token.text == "none" || token.text == "None") {
        out->value = Var::none();
      } else {
        out->kind = Expression::Kind::name;
        out->text = token.text;
      }
      return out;
    case Kind::text: {
      std::string all;
      while (current().kind == Kind::text) all += tokens_[at_++].text;
      out->value = Var::string(std::move(all));
      return out;
    }
    case Kind::integer: {
      int64_t number = 0;
      auto end = token.text.data() + token.text.size();
      if (std::from_chars(token.text.data(), end, number).ptr != end || token.text.size() > 18)
        wrong("the number " + token.text + " is too large");
      ++at_;
      out->value = Var::integer(number);
      return out;
    }
    case Kind::number:
      ++at_;
      out->value = Var::number(std::strtod(token.text.c_str(), nullptr));
      return out;
    default:
      break;
  }
  if (take_symbol("(")) {
    ExpressionPtr inner = tuple(true, {}, true);
    expect_symbol(")");
    return inner;
  }
  if (is_symbol("[")) return list();
  if (is_symbol("{")) return dict();
  unexpected("a value");
}

ExpressionPtr ExpressionParser::list() {
  auto out = make(Expression::Kind::list);
  expect_symbol("[");
  while (!is_symbol("]")) {
    if (!out->children.empty()) expect_symbol(",");
    if (is_symbol("]")) break;
    out->children.push_back(expression());
  }
  expect_symbol("]");
  return out;
}

ExpressionPtr ExpressionParser::dict() {
  auto out = make(Expression::Kind::dict);
  expect_symbol("{");
  while (!is_symbol("}")) {
    if (!out->children.empty()) expect_symbol(",");
    if (is_symbol("}")) break;
    out->children.push_back(expression());
    expect_symbol(":");
    out->children.push_back(expression());
  }
  expect_symbol("}");
  return out;
}

ExpressionPtr ExpressionParser::tuple(bool with_condition, std::initializer_list<std::string_view> enders,
                                      bool in_parentheses) {
  auto out = make(Expression::Kind::tuple);
  auto ends = [&] {
    if (current().kind == Kind::variable_end || current().kind == Kind::block_end || is_symbol(")")) return true;
    return std::any_of(enders.begin(), enders.end(), [&](auto word) { return is_name(word); });
  };
  bool comma = false;
  while (true) {
    if (!out->children.empty()) expect_symbol(",");
    if (ends()) break;
    out->children.push_back(with_condition ? expression() : or_());
    if (!is_symbol(",")) break;
    comma = true;
  }
  if (!comma) {
    if (out->children.size() == 1) return std::move(out->children[0]);
    if (out->children.empty() && !in_parentheses) unexpected("an expression");
  }
  return out;
}

ExpressionPtr ExpressionParser::postfix(ExpressionPtr inner) {
  while (true) {
    if (is_symbol(".") || is_symbol("[")) {
      inner = subscript(std::move(inner));
    } else if (is_symbol("(")) {
      auto out = make(Expression::Kind::call);
      out->children.push_back(std::move(inner));
      call_arguments(out->arguments);
      inner = std::move(out);
    } else {
      return inner;
    }
  }
}

ExpressionPtr ExpressionParser::subscript(ExpressionPtr inner) {
  Deeper deeper(*this);
  auto out = make(Expression::Kind::item);
  out->children.push_back(std::move(inner));
  if (take_symbol(".")) {
    if (current().kind == Kind::name) {
      out->kind = Expression::Kind::attribute;
      out->text = tokens_[at_++].text;
      return out;
    }
    if (current().kind != Kind::integer) unexpected("a name or a number");
    out->children.push_back(primary());
    return out;
  }
  expect_symbol("[");
  ExpressionPtr parts[3];
  bool is_slice = is_symbol(":");
  if (take_symbol("]")) {  // indexed with the empty tuple, as in Jinja2
    out->children.push_back(make(Expression::Kind::tuple));
    return out;
  }
  if (!is_slice) {
    ExpressionPtr index = expression();
    is_slice = is_symbol(":");
    if (!is_slice) {
      if (is_symbol(",")) {
        auto tuple = make(Expression::Kind::tuple);
        tuple->children.push_back(std::move(index));
        while (take_symbol(",")) tuple->children.push_back(expression());
        index = std::move(tuple);
      }
      out->children.push_back(std::move(index));
      expect_symbol("]");
      return out;
    }
    parts[0] = std::move(index);
  }
  for (int i = 1; i < 3 && take_symbol(":"); ++i)
    if (!is_symbol("]") && !is_symbol(":")) parts[i] = expression();
  expect_symbol("]");
  out->kind = Expression::Kind::slice;
  for (auto& part : parts) out->children.push_back(std::move(part));
  return out;
}

void ExpressionParser::call_arguments(std::vector<Expression::Argument>& out) {
  using How = Expression::Argument::How;
  expect_symbol("(");
  bool first = true, named = false, unpacked = false;
  while (!is_symbol(")")) {
    if (!first) expect_symbol(",");
    first = false;
    if (is_symbol(")")) break;
    Expression::Argument argument;
    if (take_symbol("*")) {
      argument.how = How::list;
      unpacked = true;
    } else if (take_symbol("**")) {
      argument.how = How::dict;
      named = true;
    } else if (current().kind == Kind::name && next().kind == Kind::symbol && next().text == "=") {
      argument.how = How::named;
      argument.name = current().text;
      for (const Expression::Argument& earlier : out)
        if (earlier.how == How::named && earlier.name == argument.name)
          wrong("the argument '" + argument.name + "' is given twice", "give it once");
      at_ += 2;
      named = true;
    } else if (named || unpacked) {
      wrong("an argument without a name follows one with a name", "put the named arguments last");
    }
    argument.value = expression();
    out.push_back(std::move(argument));
  }
  expect_symbol(")");
}

ExpressionPtr ExpressionParser::filters(ExpressionPtr inner, bool head) {
  // At the start of a filter block the first name has no '|' before it.
  while (head || is_symbol("|") || (!head && (is_name("is") || is_symbol("(")))) {
    if (!head && is_name("is")) {
      inner = test(std::move(inner));
      continue;
    }
    if (!head && is_symbol("(")) {
      auto out = make(Expression::Kind::call);
      out->children.push_back(std::move(inner));
      call_arguments(out->arguments);
      inner = std::move(out);
      continue;
    }
    if (!head) expect_symbol("|");
    head = false;
    auto out = make(Expression::Kind::filter);
    out->text = expect_name();
    while (take_symbol(".")) out->text += "." + expect_name();
    if (!soft_ && !has_filter(out->text)) unknown_.emplace_back(at_, "no filter named '" + out->text + "'");
    out->children.push_back(std::move(inner));
    if (is_symbol("(")) call_arguments(out->arguments);
    inner = std::move(out);
  }
  return inner;
}

ExpressionPtr ExpressionParser::test(ExpressionPtr inner) {
  Deeper deeper(*this);
  auto out = make(Expression::Kind::test);
  ++at_;
  bool negated = take_name("not");
  out->text = expect_name();
  while (take_symbol(".")) out->text += "." + expect_name();
  if (!soft_ && !has_test(out->text)) unknown_.emplace_back(at_, "no test named '" + out->text + "'");
  out->children.push_back(std::move(inner));
  bool value = current().kind == Kind::name || current().kind == Kind::text || current().kind == Kind::integer ||
               current().kind == Kind::number || is_symbol("[") || is_symbol("{");
  if (is_symbol("(")) {
    call_arguments(out->arguments);
  } else if (value && !is_name("else") && !is_name("or") && !is_name("and")) {
    if (is_name("is")) wrong("two tests cannot be chained with 'is'");
    Expression::Argument argument;
    argument.value = postfix(primary());
    out->arguments.push_back(std::move(argument));
  }
  if (!negated) return out;
  auto negation = make(Expression::Kind::not_);
  negation->children.push_back(std::move(out));
  return negation;
}

}  // namespace easydel::text::jinja
