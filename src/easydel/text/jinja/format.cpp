// Python's two ways of formatting: 'a %s' % x, and 'a {}'.format(x).
#include <algorithm>
#include <cmath>

#include "easydel/text/jinja/interpreter.h"
#include "easydel/text/unicode.h"

namespace easydel::text::jinja {
namespace {

constexpr int64_t widest = 1 << 20;

struct Spec {
  std::string fill = " ";
  char align = 0, sign = '-', type = 0;
  bool alternate = false, zero = false;
  char grouping = 0;
  int64_t width = 0, precision = -1;
};

std::string padded(const std::string& text, const Spec& spec, char natural) {
  auto missing = spec.width - count_characters(text);
  if (missing <= 0) return text;
  auto fill = [&](int64_t count) {
    std::string out;
    for (int64_t i = 0; i < count; ++i) out += spec.fill;
    return out;
  };
  char align = spec.align ? spec.align : natural;
  if (align == '<') return text + fill(missing);
  if (align == '^') return fill(missing / 2) + text + fill(missing - missing / 2);
  if (align == '=') {
    size_t sign = !text.empty() && (text[0] == '-' || text[0] == '+' || text[0] == ' ') ? 1 : 0;
    return text.substr(0, sign) + fill(missing) + text.substr(sign);
  }
  return fill(missing) + text;
}

std::string in_base(uint64_t value, unsigned base, bool upper) {
  std::string out;
  do {
    unsigned digit = value % base;
    out += char(digit < 10 ? '0' + digit : (upper ? 'A' : 'a') + digit - 10);
    value /= base;
  } while (value);
  std::reverse(out.begin(), out.end());
  return out;
}

std::string grouped(std::string digits, char mark) {
  size_t end = digits.find_first_not_of("0123456789");
  if (end == std::string::npos) end = digits.size();
  for (auto at = int64_t(end) - 3; at > 0; at -= 3) digits.insert(at, 1, mark);
  return digits;
}

std::string fixed(double d, char type, int64_t precision, bool alternate) {
  if (std::isnan(d)) return "nan";
  if (std::isinf(d)) return "inf";
  char format[16], buffer[512];
  precision = std::min<int64_t>(precision < 0 ? 6 : precision, 100);
  std::snprintf(format, sizeof format, "%%%s.*%c", alternate ? "#" : "", type);
  int count = std::snprintf(buffer, sizeof buffer, format, int(precision), d);
  return std::string(buffer, std::min<size_t>(count, sizeof buffer - 1));
}

std::string formatted_number(const Var& value, Spec spec) {
  char type = spec.type;
  bool floating = type && std::string_view("eEfFgG%").find(type) != std::string_view::npos;
  std::string sign, digits;
  if (value.type() == Var::Type::number || floating) {
    double d = value.as_number();
    if (std::signbit(d) && !std::isnan(d)) sign = "-";
    d = std::fabs(d);
    if (!type) {
      digits =
          spec.precision < 0 ? repr_of_number(d) : fixed(d, 'g', std::max<int64_t>(spec.precision, 1), spec.alternate);
    } else if (type == '%') {
      digits = fixed(d * 100, 'f', spec.precision, spec.alternate) + "%";
    } else if (floating) {
      digits = fixed(d, type, spec.precision, spec.alternate);
    } else {
      fail("unknown format code '", type, "' for object of type 'float'");
    }
  } else {
    int64_t i = value.as_integer();
    uint64_t magnitude = i < 0 ? 0 - uint64_t(i) : uint64_t(i);
    if (i < 0) sign = "-";
    if (!type || type == 'd' || type == 'n')
      digits = std::to_string(magnitude);
    else if (type == 'x' || type == 'X')
      digits = (spec.alternate ? type == 'x' ? "0x" : "0X" : "") + in_base(magnitude, 16, type == 'X');
    else if (type == 'o')
      digits = (spec.alternate ? "0o" : "") + in_base(magnitude, 8, false);
    else if (type == 'b')
      digits = (spec.alternate ? "0b" : "") + in_base(magnitude, 2, false);
    else if (type == 'c')
      return padded(to_utf8(std::u32string(1, static_cast<char32_t>(std::min<uint64_t>(magnitude, 0x10ffff)))), spec,
                    '<');
    else
      fail("unknown format code '", type, "' for object of type 'int'");
  }
  if (spec.grouping) digits = grouped(digits, spec.grouping);
  if (sign.empty() && spec.sign != '-') sign = std::string(1, spec.sign);
  if (spec.zero && !spec.align) spec.align = '=', spec.fill = "0";
  return padded(sign + digits, spec, '>');
}

// The mini-language after the colon of '{:>8.2f}'.
Spec parse_spec(const std::string& text) {
  Spec spec;
  std::u32string all = to_utf32(text);
  size_t at = 0;
  auto is_align = [&](size_t i) {
    return i < all.size() && (all[i] == '<' || all[i] == '>' || all[i] == '^' || all[i] == '=');
  };
  if (all.size() > 1 && is_align(1)) {
    spec.fill = to_utf8(all.substr(0, 1));
    spec.align = char(all[1]);
    at = 2;
  } else if (is_align(0)) {
    spec.align = char(all[at++]);
  }
  auto take = [&](char32_t c) { return at < all.size() && all[at] == c ? (++at, true) : false; };
  auto number = [&](int64_t& out) {
    if (at >= all.size() || all[at] < '0' || all[at] > '9') return;
    for (out = 0; at < all.size() && all[at] >= '0' && all[at] <= '9'; ++at)
      if ((out = out * 10 + (all[at] - '0')) > widest) fail("a format asks for a width over ", widest);
  };
  if (at < all.size() && (all[at] == '+' || all[at] == '-' || all[at] == ' ')) spec.sign = char(all[at++]);
  spec.alternate = take('#');
  spec.zero = take('0');
  number(spec.width);
  if (take(','))
    spec.grouping = ',';
  else if (take('_'))
    spec.grouping = '_';
  if (take('.')) number(spec.precision);
  if (at < all.size()) spec.type = char(all[at++]);
  if (at < all.size()) fail("invalid format specifier '", text, "'");
  return spec;
}

std::string formatted(const Var& value, const std::string& text) {
  if (text.empty()) return to_text(value);
  Spec spec = parse_spec(text);
  if (value.is_numeric() && !(value.type() == Var::Type::boolean && !spec.type)) return formatted_number(value, spec);
  if (spec.type && spec.type != 's')
    fail("unknown format code '", spec.type, "' for object of type '", type_name(value), "'");
  if (!value.is_string() && value.type() != Var::Type::boolean)
    fail("unsupported format string passed to ", type_name(value), ".__format__");
  std::string out = to_text(value);
  if (spec.precision >= 0) {
    std::u32string all = to_utf32(out);
    out = to_utf8(std::u32string_view(all).substr(0, size_t(spec.precision)));
  }
  return padded(out, spec, '<');
}

// A field such as `0.name[key]` of '{0.name[key]}'.
Var field_value(std::string field, const Arguments& arguments, Interpreter& interpreter, int64_t& automatic) {
  size_t end = field.find_first_of(".[");
  std::string first = field.substr(0, end);
  Var value;
  bool digits = !first.empty() && first.find_first_not_of("0123456789") == std::string::npos;
  if (first.empty() || digits) {
    int64_t index = first.empty() ? automatic++ : std::atoll(first.substr(0, 9).c_str());
    if (index >= int64_t(arguments.positional.size()))
      fail("Replacement index ", index, " out of range for positional args tuple");
    value = arguments.positional[index];
  } else {
    const Var* named = arguments.find(SIZE_MAX, first);
    if (!named) fail("format has no argument '", first, "'");
    value = *named;
  }
  while (end != std::string::npos && end < field.size()) {
    bool bracket = field[end] == '[';
    size_t stop = bracket ? field.find(']', end) : field.find_first_of(".[", end + 1);
    std::string part = field.substr(end + 1, stop == std::string::npos ? stop : stop - end - 1);
    if (!bracket) {
      value = interpreter.attribute(value, part);
    } else {
      bool index = !part.empty() && part.find_first_not_of("0123456789") == std::string::npos;
      value = interpreter.item(value, index ? Var::integer(std::atoll(part.substr(0, 9).c_str())) : Var::string(part));
    }
    end = bracket && stop != std::string::npos ? stop + 1 : stop;
  }
  return value;
}

std::string braces(const std::string& format, const Arguments& arguments, Interpreter& interpreter, int64_t& automatic,
                   int depth) {
  if (depth > 2) fail("max string recursion exceeded");
  std::string out;
  for (size_t at = 0; at < format.size(); ++at) {
    char c = format[at];
    if (c != '{' && c != '}') {
      out += c;
      continue;
    }
    if (at + 1 < format.size() && format[at + 1] == c) {
      out += c;
      ++at;
      continue;
    }
    if (c == '}') fail("Single '}' encountered in format string");
    size_t end = at + 1;
    for (int open = 1; end < format.size(); ++end) {
      if (format[end] == '{') ++open;
      if (format[end] == '}' && --open == 0) break;
    }
    if (end >= format.size()) fail("expected '}' before end of string");
    std::string inner = format.substr(at + 1, end - at - 1), spec;
    at = end;
    if (size_t colon = inner.find(':'); colon != std::string::npos) {
      spec = inner.substr(colon + 1);
      inner.resize(colon);
    }
    char conversion = 0;
    if (size_t mark = inner.find('!'); mark != std::string::npos) {
      conversion = mark + 1 < inner.size() ? inner[mark + 1] : 's';
      inner.resize(mark);
    }
    Var value = field_value(inner, arguments, interpreter, automatic);
    if (conversion == 'r') value = Var::string(repr(value));
    if (conversion == 's') value = Var::string(to_text(value));
    out += formatted(value, braces(spec, arguments, interpreter, automatic, depth + 1));
    check_size(out.size());
  }
  return out;
}

}  // namespace

std::string format_braces(const std::string& format, const Arguments& arguments, Interpreter& interpreter) {
  int64_t automatic = 0;
  return braces(format, arguments, interpreter, automatic, 0);
}

std::string format_percent(const std::string& format, const Var& arguments) {
  std::string out;
  size_t used = 0;
  bool by_name = false;
  auto next = [&]() -> Var {
    if (arguments.type() != Var::Type::tuple) {
      if (used++) fail("not enough arguments for format string");
      return arguments;
    }
    if (used >= arguments.items().size()) fail("not enough arguments for format string");
    return arguments.items()[used++];
  };
  for (size_t at = 0; at < format.size(); ++at) {
    if (format[at] != '%') {
      out += format[at];
      continue;
    }
    Spec spec;
    std::optional<Var> value;
    ++at;
    if (at < format.size() && format[at] == '(') {
      size_t end = format.find(')', at);
      if (end == std::string::npos) fail("incomplete format key");
      if (!arguments.is_dict()) fail("format requires a mapping");
      std::string key = format.substr(at + 1, end - at - 1);
      const Var* found = arguments.as_dict().find(key);
      if (!found) fail("format has no argument '", key, "'");
      value = *found;
      by_name = true;
      at = end + 1;
    }
    bool left = false;
    for (; at < format.size(); ++at) {
      char c = format[at];
      if (c == '-')
        left = true;
      else if (c == '0')
        spec.zero = true;
      else if (c == '+' || c == ' ')
        spec.sign = spec.sign == '+' ? '+' : c;
      else if (c == '#')
        spec.alternate = true;
      else
        break;
    }
    auto number = [&](int64_t& to) {
      if (at < format.size() && format[at] == '*') {
        Var width = next();
        if (!width.is_integral()) fail("* wants int");
        to = std::clamp<int64_t>(width.as_integer(), 0, widest);
        ++at;
        return;
      }
      for (to = 0; at < format.size() && format[at] >= '0' && format[at] <= '9'; ++at)
        if ((to = to * 10 + (format[at] - '0')) > widest) fail("a format asks for a width over ", widest);
    };
    number(spec.width);
    if (at < format.size() && format[at] == '.') {
      ++at;
      number(spec.precision);
    }
    while (at < format.size() && (format[at] == 'l' || format[at] == 'h' || format[at] == 'L')) ++at;
    if (at >= format.size()) fail("incomplete format");
    char type = format[at];
    if (type == '%') {
      out += '%';
      continue;
    }
    if (!value) value = next();
    if (left) spec.align = '<', spec.zero = false;
    if (type == 's' || type == 'r' || type == 'a') {
      std::string text = type == 's' ? to_text(*value) : repr(*value);
      if (spec.precision >= 0) text = to_utf8(std::u32string_view(to_utf32(text)).substr(0, spec.precision));
      out += padded(text, spec, '>');
    } else if (type == 'c' && value->is_string()) {
      out += padded(value->as_string(), spec, '>');
    } else if (std::string_view("diuxXoeEfFgGc").find(type) != std::string_view::npos) {
      if (!value->is_numeric()) fail("%", type, " format: a real number is required, not ", type_name(*value));
      bool whole = std::string_view("diu").find(type) != std::string_view::npos;
      if (whole && value->type() == Var::Type::number)
        value = Var::integer(int64_t(std::trunc(std::clamp(value->as_number(), -9e18, 9e18))));
      spec.type = whole ? 'd' : type;
      if (whole && spec.precision >= 0) spec.precision = -1;
      out += formatted_number(*value, spec);
    } else {
      fail("unsupported format character '", type, "'");
    }
    check_size(out.size());
  }
  bool all_used = by_name || arguments.is_dict() || arguments.type() == Var::Type::list ||
                  (arguments.type() == Var::Type::tuple ? used == arguments.items().size() : used == 1);
  if (!all_used) fail("not all arguments converted during string formatting");
  return out;
}

}  // namespace easydel::text::jinja
