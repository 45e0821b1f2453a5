#include "easydel/base/document.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "easydel/base/names.h"

namespace easydel {
namespace {

bool digits(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

// [-+]? (d+ | d+.d* | .d+) ([eE][-+]?d+)?: the float of YAML 1.2's core schema, of which JSON's is a part.
bool is_decimal(std::string_view text) {
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) text.remove_prefix(1);
  const size_t e = text.find_first_of("eE");
  if (e != std::string_view::npos) {
    std::string_view exponent = text.substr(e + 1);
    if (!exponent.empty() && (exponent[0] == '-' || exponent[0] == '+')) exponent.remove_prefix(1);
    if (!digits(exponent)) return false;
    text = text.substr(0, e);
  }
  const size_t point = text.find('.');
  if (point == std::string_view::npos) return digits(text);
  const std::string_view whole = text.substr(0, point), part = text.substr(point + 1);
  return (whole.empty() || digits(whole)) && (part.empty() || digits(part)) && !(whole.empty() && part.empty());
}

std::optional<double> parse_decimal(std::string_view text) {
  if (!is_decimal(text)) return std::nullopt;
  if (text[0] == '+') text.remove_prefix(1);
  double out = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error == std::errc::result_out_of_range) {  // as in Python: too large is infinite, too small is zero
    const size_t e = text.find_first_of("eE");
    const bool tiny = e != std::string_view::npos && text.find('-', e) != std::string_view::npos;
    out = tiny ? 0 : std::numeric_limits<double>::infinity();
    return text[0] == '-' ? -out : out;
  }
  return out;
}

std::optional<int64_t> parse_integer(std::string_view text) {
  int base = 10;
  if (text.starts_with("0x")) base = 16;
  if (text.starts_with("0o")) base = 8;
  if (base != 10) text.remove_prefix(2);
  if (base == 10 && text.starts_with('+')) text.remove_prefix(1);
  if (text.empty() || (base != 10 && text[0] == '-')) return std::nullopt;
  if (text[0] == '-' ? !digits(text.substr(1)) : base == 10 && !digits(text)) return std::nullopt;
  int64_t out = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out, base);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return out;
}

}  // namespace

Value Value::text(std::string s) { return {.kind = Kind::text, .scalar = std::move(s)}; }
Value Value::boolean(bool b) { return {.kind = Kind::plain, .scalar = b ? "true" : "false"}; }
Value Value::integer(int64_t i) { return {.kind = Kind::plain, .scalar = std::to_string(i)}; }
Value Value::number(double d) {
  if (std::isnan(d)) return {.kind = Kind::plain, .scalar = ".nan"};
  if (std::isinf(d)) return {.kind = Kind::plain, .scalar = d > 0 ? ".inf" : "-.inf"};
  char buffer[64];
  std::string text(buffer, std::to_chars(buffer, buffer + sizeof buffer, d).ptr);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return {.kind = Kind::plain, .scalar = std::move(text)};
}
Value Value::list() { return {.kind = Kind::list}; }
Value Value::map() { return {.kind = Kind::map}; }

std::optional<bool> Value::as_bool() const {
  if (kind != Kind::plain) return std::nullopt;
  if (scalar == "true" || scalar == "True" || scalar == "TRUE") return true;
  if (scalar == "false" || scalar == "False" || scalar == "FALSE") return false;
  return std::nullopt;
}

std::optional<int64_t> Value::as_int() const {
  if (kind != Kind::plain) return std::nullopt;
  if (const auto whole = parse_integer(scalar)) return whole;
  const auto number = parse_decimal(scalar);
  // 2^63 is the first double that is too large; beyond 2^53 a double no longer says which integer was meant.
  if (!number || std::trunc(*number) != *number || std::abs(*number) > 0x1p53) return std::nullopt;
  return int64_t(*number);
}

std::optional<double> Value::as_double() const {
  if (kind != Kind::plain) return std::nullopt;
  if (const auto whole = parse_integer(scalar)) return double(*whole);
  if (const auto number = parse_decimal(scalar)) return number;
  const std::string word = canonical(scalar.starts_with('-') || scalar.starts_with('+') ? scalar.substr(1) : scalar);
  if (word == ".inf")
    return scalar[0] == '-' ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
  if (scalar == ".nan" || scalar == ".NaN" || scalar == ".NAN") return std::numeric_limits<double>::quiet_NaN();
  return std::nullopt;
}

std::optional<std::string> Value::as_string() const {
  if (kind == Kind::text) return scalar;
  if (kind == Kind::plain && !as_bool() && !as_double()) return scalar;
  return std::nullopt;
}

const Value* Value::find(std::string_view key) const {
  for (const auto& [name, value] : entries)
    if (name == key) return &value;
  return nullptr;
}
Value* Value::find(std::string_view key) { return const_cast<Value*>(std::as_const(*this).find(key)); }

Value& Value::set(std::string_view key, Value value) {
  if (kind == Kind::null) kind = Kind::map;
  check(kind == Kind::map, "document: set('", key, "') of a value that is not a map");
  if (Value* known = find(key)) return *known = std::move(value);
  if (!key_places.empty()) key_places.push_back(value.place);
  return entries.emplace_back(key, std::move(value)).second;
}

bool operator==(const Value& a, const Value& b) {
  if (a.kind == Value::Kind::list && b.kind == Value::Kind::list) return a.items == b.items;
  if (a.kind == Value::Kind::map && b.kind == Value::Kind::map)
    return a.entries.size() == b.entries.size() && std::ranges::all_of(a.entries, [&](const auto& entry) {
             const Value* other = b.find(entry.first);
             return other && *other == entry.second;
           });
  const bool scalars = a.kind <= Value::Kind::text && b.kind <= Value::Kind::text;
  if (!scalars) return false;
  if (a.is_null() || b.is_null()) return a.kind == b.kind;
  // A bare word equals the same word in quotes; 5 does not equal "5"; 1e3 equals 1000.
  const auto word_a = a.as_string(), word_b = b.as_string();
  if (word_a || word_b) return word_a == word_b;
  if (a.as_bool() || b.as_bool()) return a.as_bool() == b.as_bool();
  if (a.as_int() && b.as_int()) return a.as_int() == b.as_int();
  const auto number_a = a.as_double(), number_b = b.as_double();
  return number_a == number_b || (number_a && number_b && std::isnan(*number_a) && std::isnan(*number_b));
}

Value parse_file(const std::filesystem::path& path) {
  if (!files::exists(path)) refuse(path.string(), "no such file");
  const std::string text = files::read(path);
  return path.extension() == ".json" ? parse_json(text, path.string()) : parse_yaml(text, path.string());
}

}  // namespace easydel
