// Writes documents as text: YAML in block style, YAML on one line for messages, JSON.
#include <algorithm>
#include <array>
#include <cmath>

#include "easydel/base/document.h"
#include "easydel/base/names.h"

namespace easydel {
namespace {

constexpr size_t flow_columns = 100;  // a list of scalars that fits is written on one line

// The first character of `rest` if some reader would drop it or take it for the end of a line: control characters, NEL,
// LS, PS, the byte order mark. 0 for any other character.
uint32_t unsafe(std::string_view rest) {
  const auto byte = [&](size_t i) { return i < rest.size() ? static_cast<unsigned char>(rest[i]) : 0u; };
  // NUL is returned as 0x110000, because 0 means none
  if (byte(0) < 0x20 || byte(0) == 0x7f) return byte(0) == 0 ? 0x110000 : byte(0);
  if (byte(0) == 0xc2 && byte(1) < 0xa0) return byte(1);
  const uint32_t wide = (byte(0) & 0xf) << 12 | (byte(1) & 0x3f) << 6 | (byte(2) & 0x3f);
  const bool three = byte(0) == 0xe2 || byte(0) == 0xef;
  return three && (wide == 0x2028 || wide == 0x2029 || wide == 0xfeff || wide >= 0xfffe) ? wide : 0;
}

std::string in_quotes(std::string_view text) {
  std::string out = "\"";
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\t':
        out += "\\t";
        break;
      case '\r':
        out += "\\r";
        break;
      default:
        if (const uint32_t code = unsafe(text.substr(i)); code != 0) {
          out += "\\u";
          for (int shift = 12; shift >= 0; shift -= 4) out += "0123456789abcdef"[code >> shift & 15];
          i += code > 0x10ffff || code < 0x80 ? 0 : code < 0x800 ? 1 : 2;
        } else {
          out += c;
        }
    }
  }
  return out + '"';
}

// Words that some reader of YAML (1.1 or 1.2) takes for a null, a boolean or a merge key.
bool is_reserved_word(std::string_view text) {
  static constexpr std::array<std::string_view, 13> reserved_words = {"null", "~", "true", "false", "yes", "no",  "on",
                                                                      "off",  "y", "n",    "<<",    "=",   "none"};
  return std::ranges::find(reserved_words, canonical(text)) != reserved_words.end();
}

std::string yaml_text(std::string_view text, bool flow) {
  const bool starts_well =
      !text.empty() && std::string_view("-?:,[]{}#&*!|>'\"%@` ").find(text[0]) == std::string_view::npos;
  // Words that begin like a number are quoted: readers of YAML 1.1 know more forms of numbers than we do.
  const bool number_like = !text.empty() && (std::string_view("0123456789+.").find(text[0]) != std::string_view::npos);
  bool plain = starts_well && !number_like && !is_reserved_word(text) && text.back() != ' ' && text.back() != ':' &&
               text.find(": ") == std::string_view::npos && text.find(" #") == std::string_view::npos;
  // A path may begin with a dot or contain a colon; that is plain in every reader.
  if (!plain && (text.starts_with("./") || text.starts_with("../")) &&
      text.find_first_of(" :#") == std::string_view::npos)
    plain = true;
  for (size_t i = 0; i < text.size(); ++i) plain = plain && unsafe(text.substr(i)) == 0;
  if (flow) plain = plain && text.find_first_of(",[]{}") == std::string_view::npos;
  return plain ? std::string(text) : in_quotes(text);
}

std::string yaml_plain(const Value& value) {
  // PyYAML reads 1e-5 as a string; with a decimal point every reader takes it for a number.
  const std::string& text = value.scalar;
  const size_t e = text.find_first_of("eE");
  if (e != std::string::npos && text.find('.') == std::string::npos && !text.starts_with("0x") && value.as_double()) {
    std::string exponent = text.substr(e + 1);
    if (exponent[0] != '-' && exponent[0] != '+') exponent = "+" + exponent;
    return text.substr(0, e) + ".0e" + exponent;
  }
  return text;
}

bool is_scalar(const Value& value) { return value.kind <= Value::Kind::text; }

std::string flow(const Value& value, bool portable) {
  switch (value.kind) {
    case Value::Kind::null:
      return "null";
    case Value::Kind::plain:
      if (value.as_string()) return yaml_text(value.scalar, true);
      return portable ? yaml_plain(value) : value.scalar;
    case Value::Kind::text:
      return yaml_text(value.scalar, true);
    case Value::Kind::list: {
      std::string out;
      for (const Value& item : value.items) out += (out.empty() ? "" : ", ") + flow(item, portable);
      return "[" + out + "]";
    }
    case Value::Kind::map: {
      std::string out;
      for (const auto& [key, item] : value.entries)
        out += (out.empty() ? "" : ", ") + yaml_text(key, true) + ": " + flow(item, portable);
      return "{" + out + "}";
    }
  }
  return "";
}

void block(const Value& value, size_t indent, std::string& out);

// After "key:" or "-": on the same line if it fits, otherwise below.
void block_child(const Value& value, size_t indent, bool in_list, std::string& out) {
  const bool empty = value.items.empty() && value.entries.empty();
  if (value.as_string()) {
    out += " " + yaml_text(value.scalar, false) + "\n";
  } else if (is_scalar(value) || empty) {
    out += " " + flow(value, true) + "\n";
  } else if (std::string line; value.is_list() && std::ranges::all_of(value.items, is_scalar) &&
                               (line = flow(value, true)).size() + indent <= flow_columns) {
    out += " " + line + "\n";
  } else if (in_list) {
    std::string inner;
    block(value, indent + 2, inner);
    out += " " + inner.substr(indent + 2);  // the first key is on the line of the dash
  } else {
    out += "\n";
    block(value, indent + 2, out);
  }
}

void block(const Value& value, size_t indent, std::string& out) {
  const std::string pad(indent, ' ');
  for (const Value& item : value.items) {
    out += pad + "-";
    block_child(item, indent, true, out);
  }
  for (const auto& [key, item] : value.entries) {
    out += pad + yaml_text(key, false) + ":";
    block_child(item, indent, false, out);
  }
}

bool is_json_number(std::string_view text) {
  if (text.starts_with('-')) text.remove_prefix(1);
  if (text.empty() || text[0] < '0' || text[0] > '9') return false;
  if (text.size() > 1 && text[0] == '0' && text[1] >= '0' && text[1] <= '9') return false;
  const size_t point = text.find('.');
  if (point != std::string_view::npos && (point + 1 == text.size() || text[point + 1] < '0' || text[point + 1] > '9'))
    return false;
  return text.find_first_not_of("0123456789.eE+-") == std::string_view::npos;
}

std::string json_scalar(const Value& value) {
  if (value.is_null()) return "null";
  if (const auto flag = value.as_bool()) return *flag ? "true" : "false";
  if (const auto number = value.as_double()) {
    if (std::isnan(*number)) return "NaN";
    if (std::isinf(*number)) return *number > 0 ? "Infinity" : "-Infinity";
    if (is_json_number(value.scalar)) return value.scalar;
    const auto whole = value.as_int();
    return whole ? std::to_string(*whole) : Value::number(*number).scalar;
  }
  return in_quotes(value.scalar);
}

void json(const Value& value, int indent, size_t depth, std::string& out) {
  if (is_scalar(value)) {
    out += json_scalar(value);
    return;
  }
  const bool list = value.is_list();
  const size_t count = list ? value.items.size() : value.entries.size();
  const std::string line = indent > 0 ? "\n" + std::string(depth * size_t(indent), ' ') : "";
  const std::string inner = indent > 0 ? line + std::string(size_t(indent), ' ') : "";
  out += list ? '[' : '{';
  for (size_t i = 0; i < count; ++i) {
    if (i > 0) out += indent > 0 ? "," : ", ";
    out += inner;
    if (!list) out += in_quotes(value.entries[i].first) + ": ";
    json(list ? value.items[i] : value.entries[i].second, indent, depth + 1, out);
  }
  if (count > 0) out += line;
  out += list ? ']' : '}';
}

}  // namespace

std::string to_yaml(const Value& value) {
  std::string out;
  const bool empty = value.items.empty() && value.entries.empty();
  if (value.as_string()) return yaml_text(value.scalar, false) + "\n";
  if (is_scalar(value) || empty) return flow(value, true) + "\n";
  block(value, 0, out);
  return out;
}

std::string to_yaml_flow(const Value& value) { return flow(value, false); }

std::string to_json(const Value& value, int indent) {
  std::string out;
  json(value, indent, 0, out);
  return out;
}

}  // namespace easydel
