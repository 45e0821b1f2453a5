#include "easydel/train/model_tools.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <numbers>
#include <stdexcept>

#include "easydel/base/names.h"

namespace easydel::train {
namespace {

constexpr size_t longest_expression = 4096;
constexpr int deepest = 100;  // parentheses, signs and powers within each other

// Why an expression has no value.
struct NoValue : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// By descent: sum = product {+- product}, product = signed {*/% signed}, signed = [+-] power, power = atom [^ signed].
class Expression {
 public:
  explicit Expression(std::string_view text) : text_(text) {}

  double value() {
    const double out = sum(0);
    if (more()) throw NoValue("'" + std::string(text_.substr(at_, 20)) + "' does not belong here");
    if (!std::isfinite(out)) throw NoValue("the result is not a finite number");
    return out;
  }

 private:
  bool more() {
    while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos) ++at_;
    return at_ < text_.size();
  }
  bool take(std::string_view token) {
    if (!more() || !text_.substr(at_).starts_with(token)) return false;
    at_ += token.size();
    return true;
  }
  static void check_depth(int depth) {
    if (depth > deepest) throw NoValue("it is nested too deep");
  }

  double sum(int depth) {
    double out = product(depth);
    for (;;)
      if (take("+"))
        out += product(depth);
      else if (take("-"))
        out -= product(depth);
      else
        return out;
  }
  double product(int depth) {
    double out = with_sign(depth);
    for (;;)
      if (more() && text_.substr(at_).starts_with("**"))
        return out;
      else if (take("*"))
        out *= with_sign(depth);
      else if (take("/"))
        out /= divisor(depth);
      else if (take("%"))
        out = modulo(out, divisor(depth));
      else
        return out;
  }
  double divisor(int depth) {
    const double out = with_sign(depth);
    if (out == 0) throw NoValue("division by zero");
    return out;
  }
  // With the sign of the divisor, as in Python.
  static double modulo(double a, double b) {
    const double rest = std::fmod(a, b);
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
  }
  double with_sign(int depth) {
    check_depth(depth);
    if (take("-")) return -with_sign(depth + 1);
    if (take("+")) return with_sign(depth + 1);
    const double base = atom(depth);
    return take("**") || take("^") ? std::pow(base, with_sign(depth + 1)) : base;
  }
  double atom(int depth) {
    if (take("(")) {
      const double out = sum(depth + 1);
      if (!take(")")) throw NoValue("a parenthesis is not closed");
      return out;
    }
    if (!more()) throw NoValue("it ends where a number should be");
    const char* const begin = text_.data() + at_;
    double number = 0;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), number);
    const bool is_number = error == std::errc() && *begin >= '.' && *begin <= '9';
    if (!is_number) return named(depth);
    at_ += size_t(end - begin);
    return number;
  }
  double named(int depth) {
    const size_t begin = at_;
    const auto is_letter = [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    };
    while (at_ < text_.size() && is_letter(text_[at_])) ++at_;
    const std::string_view name = text_.substr(begin, at_ - begin);
    if (name.empty()) throw NoValue("'" + std::string(text_.substr(at_, 1)) + "' is not a number");
    if (name == "pi") return std::numbers::pi;
    if (name == "e") return std::numbers::e;
    if (!take("(")) throw NoValue("'" + std::string(name) + "' is not known");
    std::vector<double> given{sum(depth + 1)};
    while (take(",")) given.push_back(sum(depth + 1));
    if (!take(")")) throw NoValue("a parenthesis is not closed");
    return applied(name, given);
  }
  static double applied(std::string_view name, const std::vector<double>& given) {
    if (name == "min") return std::ranges::min(given);
    if (name == "max") return std::ranges::max(given);
    struct Function {
      std::string_view name;
      double (*of)(double);
    };
    static constexpr std::array functions{
        Function{"abs", [](double x) { return std::abs(x); }},
        Function{"ceil", [](double x) { return std::ceil(x); }},
        Function{"cos", [](double x) { return std::cos(x); }},
        Function{"exp", [](double x) { return std::exp(x); }},
        Function{"floor", [](double x) { return std::floor(x); }},
        Function{"log", [](double x) { return std::log(x); }},
        Function{"log10", [](double x) { return std::log10(x); }},
        Function{"round", [](double x) { return std::nearbyint(x); }},
        Function{"sin", [](double x) { return std::sin(x); }},
        Function{"sqrt", [](double x) { return std::sqrt(x); }},
        Function{"tan", [](double x) { return std::tan(x); }},
    };
    const auto* const found = std::ranges::find(functions, name, &Function::name);
    if (found == functions.end()) throw NoValue("'" + std::string(name) + "' is not known");
    if (given.size() != 1) throw NoValue("'" + std::string(name) + "' takes one number");
    return found->of(given.front());
  }

  std::string_view text_;
  size_t at_ = 0;
};

constexpr ModelTool calculator{
    "calculator",
    [] {
      return parse_json(R"({"type": "function", "function": {"name": "calculator",
          "description": "Computes the value of an arithmetic expression.",
          "parameters": {"type": "object", "required": ["expression"], "properties": {"expression":
              {"type": "string", "description": "Numbers, + - * / % ^, parentheses, and functions such as sqrt(2)."}}}}})");
    },
    [](const Value& arguments) -> std::string {
      const Value* const expression = arguments.is_map() ? arguments.find("expression") : nullptr;
      if (!expression || expression->is_null() || expression->is_list() || expression->is_map())
        return "error: give the argument 'expression', a text";
      return calculated(expression->scalar);
    }};

constexpr std::array tools{calculator};

}  // namespace

std::string calculated(std::string_view expression) {
  if (expression.size() > longest_expression) return "error: the expression is too long";
  try {
    const double value = Expression(expression).value();
    char text[64];
    // Whole numbers as such, as far as a double holds all of them.
    const bool whole = value == std::trunc(value) && std::abs(value) < 9007199254740992.0;
    const auto end = whole ? std::to_chars(text, text + sizeof text, int64_t(value))
                           : std::to_chars(text, text + sizeof text, value, std::chars_format::general, 15);
    return {text, end.ptr};
  } catch (const NoValue& why) {
    return std::string("error: ") + why.what();
  }
}

const ModelTool* find_model_tool(std::string_view name) {
  const auto* const found = std::ranges::find(tools, name, &ModelTool::name);
  return found == tools.end() ? nullptr : found;
}

std::vector<std::string> model_tool_names() {
  std::vector<std::string> out;
  for (const ModelTool& tool : tools) out.emplace_back(tool.name);
  return out;
}

}  // namespace easydel::train
