// Arithmetic, slices and the % of strings, as in Python.
#include <algorithm>
#include <cmath>

#include "easydel/text/jinja/interpreter.h"
#include "easydel/text/unicode.h"

namespace easydel::text::jinja {
namespace {

[[noreturn]] void unsupported(std::string_view operation, const Var& a, const Var& b) {
  for (const Var* side : {&a, &b})
    if (side->is_undefined()) fail(side->as_string().empty() ? "a value is undefined" : side->as_string());
  if (operation == "+" && a.is_string()) fail("can only concatenate str (not \"", type_name(b), "\") to str");
  fail("unsupported operand type(s) for ", operation, ": '", type_name(a), "' and '", type_name(b), "'");
}

[[noreturn]] void overflow() { fail("a whole number becomes too large"); }

int64_t floor_div(int64_t a, int64_t b) {
  int64_t quotient = a / b;
  return (a % b != 0) && ((a < 0) != (b < 0)) ? quotient - 1 : quotient;
}

Var whole_power(int64_t base, int64_t exponent) {
  if (exponent < 0) {
    if (base == 0) fail("0.0 cannot be raised to a negative power");
    return Var::number(std::pow(double(base), double(exponent)));
  }
  int64_t out = 1;
  while (exponent > 0) {
    if (exponent & 1 && __builtin_mul_overflow(out, base, &out)) overflow();
    exponent >>= 1;
    if (exponent && __builtin_mul_overflow(base, base, &base)) overflow();
  }
  return Var::integer(out);
}

Var arithmetic(std::string_view operation, const Var& a, const Var& b) {
  char op = operation[0];
  bool doubled = operation.size() == 2;
  if (a.is_integral() && b.is_integral() && !(op == '/' && !doubled)) {
    int64_t x = a.as_integer(), y = b.as_integer(), out = 0;
    if (op == '+' && __builtin_add_overflow(x, y, &out)) overflow();
    if (op == '-' && __builtin_sub_overflow(x, y, &out)) overflow();
    if (op == '*' && doubled) return whole_power(x, y);
    if (op == '*' && __builtin_mul_overflow(x, y, &out)) overflow();
    if (op == '/' || op == '%') {
      if (y == 0) fail(op == '/' ? "integer division or modulo by zero" : "integer modulo by zero");
      if (x == INT64_MIN && y == -1) overflow();
      int64_t quotient = floor_div(x, y);
      out = op == '/' ? quotient : x - quotient * y;
    }
    return Var::integer(out);
  }
  double x = a.as_number(), y = b.as_number();
  switch (op) {
    case '+':
      return Var::number(x + y);
    case '-':
      return Var::number(x - y);
    case '*':
      return Var::number(doubled ? std::pow(x, y) : x * y);
    default:
      break;
  }
  if (y == 0) fail(a.is_integral() && b.is_integral() ? "division by zero" : "float division by zero");
  if (op == '/') return Var::number(doubled ? std::floor(x / y) : x / y);
  double rest = std::fmod(x, y);
  if (rest != 0 && (rest < 0) != (y < 0)) rest += y;
  return Var::number(rest);
}

Var repeated(const Var& value, int64_t times) {
  times = std::max<int64_t>(times, 0);
  if (value.is_string()) {
    const std::string& text = value.as_string();
    if (!text.empty() && uint64_t(times) > (64u << 20) / text.size() + 1) check_size(SIZE_MAX);
    std::string out;
    out.reserve(text.size() * times);
    for (int64_t i = 0; i < times; ++i) out += text;
    return Var::string(std::move(out), value.is_markup());
  }
  const auto& items = value.items();
  if (!items.empty() && uint64_t(times) > 1'000'000 / items.size() + 1) check_size(SIZE_MAX);
  std::vector<Var> out;
  for (int64_t i = 0; i < times; ++i) out.insert(out.end(), items.begin(), items.end());
  return value.type() == Var::Type::list ? Var::list(std::move(out)) : Var::tuple(std::move(out));
}

// markupsafe: operands added to a Markup are escaped unless they are Markups.
Var added_strings(const Var& a, const Var& b) {
  bool markup = a.is_markup() || b.is_markup();
  auto text = [&](const Var& v) { return markup && !v.is_markup() ? escape(v.as_string()) : v.as_string(); };
  return Var::string(text(a) + text(b), markup);
}

}  // namespace

Var binary(std::string_view operation, const Var& a, const Var& b) {
  if (a.is_numeric() && b.is_numeric()) return arithmetic(operation, a, b);
  if (operation == "+") {
    if (a.is_string() && b.is_string()) return added_strings(a, b);
    if (a.is_array() && a.type() == b.type()) {
      std::vector<Var> items = a.items();
      items.insert(items.end(), b.items().begin(), b.items().end());
      return a.type() == Var::Type::list ? Var::list(std::move(items)) : Var::tuple(std::move(items));
    }
  }
  if (operation == "*") {
    if ((a.is_string() || a.is_array()) && b.is_integral()) return repeated(a, b.as_integer());
    if ((b.is_string() || b.is_array()) && a.is_integral()) return repeated(b, a.as_integer());
  }
  if (operation == "%" && a.is_string() && !b.is_undefined())
    return Var::string(format_percent(a.as_string(), b), a.is_markup());
  unsupported(operation, a, b);
}

namespace {

struct Places {
  int64_t from, to, by;
};

// slice.indices(n).
Places places_of(int64_t n, const Var* begin, const Var* end, const Var* step) {
  const int64_t by = step ? step->as_integer() : 1;
  if (by == 0) fail("slice step cannot be zero");
  auto bound = [&](const Var* part, int64_t fallback) {
    if (!part) return fallback;
    int64_t i = part->as_integer();
    if (i < 0) i = i < -n ? (by < 0 ? -1 : 0) : i + n;
    return std::min(i, by < 0 ? n - 1 : n);
  };
  return {bound(begin, by > 0 ? 0 : n - 1), bound(end, by > 0 ? n : -1), by};
}

}  // namespace

Var slice(const Var& value, const Var* begin, const Var* end, const Var* step) {
  const bool range = value.is_view() && value.as_view().kind == "range";
  if (value.is_dict()) fail("unhashable type: 'slice'");
  if (!range && !value.is_string() && !value.is_array()) fail("'", type_name(value), "' object is not subscriptable");
  for (const Var* part : {begin, end, step})
    if (part && !part->is_integral()) fail("slice indices must be integers or None or have an __index__ method");
  if (range) {
    const ViewData& view = value.as_view();
    const auto [from, to, by] = places_of(int64_t(view.items.size()), begin, end, step);
    Var out = Var::view("range", slice(Var::list(view.items), begin, end, step).items());
    out.as_view().bounds = {view.bounds[0] + from * view.bounds[2], view.bounds[0] + to * view.bounds[2],
                            view.bounds[2] * by};
    return out;
  }
  const int64_t n = length(value);
  const auto [from, to, by] = places_of(n, begin, end, step);
  if (value.is_string()) {
    const std::string& text = value.as_string();
    bool ascii = int64_t(text.size()) == n;
    if (ascii && by == 1) return Var::string(from < to ? text.substr(from, to - from) : "", value.is_markup());
    std::u32string all = to_utf32(text), out;
    for (int64_t i = from; by > 0 ? i < to : i > to; i += by) {
      out += all[i];
      if (by > n || by < -n) break;
    }
    return Var::string(to_utf8(out), value.is_markup());
  }
  std::vector<Var> out;
  for (int64_t i = from; by > 0 ? i < to : i > to; i += by) {
    out.push_back(value.items()[i]);
    if (by > n || by < -n) break;
  }
  return value.type() == Var::Type::list ? Var::list(std::move(out)) : Var::tuple(std::move(out));
}

}  // namespace easydel::text::jinja
