// str() and repr() of values.
#include <charconv>
#include <cmath>

#include "easydel/text/jinja/value.h"
#include "easydel/text/unicode.h"

namespace easydel::text::jinja {

std::string repr_of_number(double d) {
  if (std::isnan(d)) return "nan";
  if (std::isinf(d)) return d > 0 ? "inf" : "-inf";
  char buffer[40];
  auto end = std::to_chars(buffer, buffer + sizeof buffer, d, std::chars_format::scientific).ptr;
  std::string_view text(buffer, end - buffer);
  std::string sign = text.starts_with('-') ? "-" : "";
  text.remove_prefix(sign.size());
  size_t e = text.find('e');
  std::string digits(1, text[0]);
  if (e > 2) digits += text.substr(2, e - 2);
  int exponent = std::atoi(std::string(text.substr(e + 1)).c_str());
  auto count = int(digits.size());
  if (exponent < -4 || exponent >= 16) {
    std::string power = std::to_string(std::abs(exponent));
    if (power.size() < 2) power.insert(0, "0");
    return sign + digits[0] + (count > 1 ? "." + digits.substr(1) : "") + "e" + (exponent < 0 ? "-" : "+") + power;
  }
  if (exponent < 0) return sign + "0." + std::string(-exponent - 1, '0') + digits;
  if (count <= exponent + 1) return sign + digits + std::string(exponent + 1 - count, '0') + ".0";
  return sign + digits.substr(0, exponent + 1) + "." + digits.substr(exponent + 1);
}

namespace {

std::string repr_of_string(const std::string& text) {
  bool doubled = text.find('\'') != std::string::npos && text.find('"') == std::string::npos;
  char quote = doubled ? '"' : '\'';
  std::string out(1, quote);
  auto hex = [&](const char* mark, char32_t c, int width) {
    char buffer[12];
    std::snprintf(buffer, sizeof buffer, "%0*x", width, unsigned(c));
    out += mark + std::string(buffer);
  };
  for (size_t at = 0; at < text.size();) {
    size_t from = at;
    char32_t c = next_character(text, at);
    if (c == static_cast<char32_t>(quote) || c == '\\') {
      out += '\\';
      out += char(c);
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\r') {
      out += "\\r";
    } else if (c == '\t') {
      out += "\\t";
    } else {
      Category g = category_of(c);
      bool hidden = c != ' ' && (g >= Category::Zs || g == Category::Cn);
      if (!hidden)
        out.append(text, from, at - from);
      else if (c < 0x100)
        hex("\\x", c, 2);
      else if (c < 0x10000)
        hex("\\u", c, 4);
      else
        hex("\\U", c, 8);
    }
  }
  return out + quote;
}

}  // namespace

std::string repr(const Var& value) {
  switch (value.type()) {
    case Var::Type::undefined:
      return "Undefined";
    case Var::Type::none:
      return "None";
    case Var::Type::boolean:
      return value.as_bool() ? "True" : "False";
    case Var::Type::integer:
      return std::to_string(value.as_integer());
    case Var::Type::number:
      return repr_of_number(value.as_number());
    case Var::Type::string:
      return value.is_markup() ? "Markup(" + repr_of_string(value.as_string()) + ")"
                               : repr_of_string(value.as_string());
    case Var::Type::list:
    case Var::Type::tuple: {
      bool tuple = value.type() == Var::Type::tuple;
      std::string out = tuple ? "(" : "[";
      for (size_t i = 0; i < value.items().size(); ++i) {
        out += (i ? ", " : "") + repr(value.items()[i]);
        check_size(out.size());
      }
      return out + (tuple ? value.items().size() == 1 ? ",)" : ")" : "]");
    }
    case Var::Type::dict: {
      std::string out = "{";
      for (auto& [key, item] : value.as_dict().entries) {
        out += (out.size() > 1 ? ", " : "") + repr(key) + ": " + repr(item);
        check_size(out.size());
      }
      return out + "}";
    }
    case Var::Type::view: {
      const ViewData& view = value.as_view();
      if (view.once()) return "<" + view.kind + " object>";
      if (view.kind != "range") return view.kind + "(" + repr(Var::list(view.items)) + ")";
      auto [begin, end, by] = view.bounds;
      return str("range(", begin, ", ", end, by == 1 ? "" : ", " + std::to_string(by), ")");
    }
    case Var::Type::object:
      return value.as_object().name();
  }
  return "";
}

std::string to_text(const Var& value) {
  if (value.is_string()) return value.as_string();
  if (value.is_undefined()) return "";
  return repr(value);
}

std::string type_name(const Var& value) {
  switch (value.type()) {
    case Var::Type::undefined:
      return "Undefined";
    case Var::Type::none:
      return "NoneType";
    case Var::Type::boolean:
      return "bool";
    case Var::Type::integer:
      return "int";
    case Var::Type::number:
      return "float";
    case Var::Type::string:
      return value.is_markup() ? "Markup" : "str";
    case Var::Type::list:
      return "list";
    case Var::Type::tuple:
      return "tuple";
    case Var::Type::dict:
      return "dict";
    case Var::Type::view:
      return value.as_view().kind;
    case Var::Type::object:
      return value.as_object().callable() ? "function" : "object";
  }
  return "";
}

}  // namespace easydel::text::jinja
