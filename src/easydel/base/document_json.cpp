// Parses JSON text by simdjson's on-demand parser: strict, except for NaN and Infinity, which Python writes.
#include <cctype>
#include <functional>
#include <string>
#include <unordered_set>

#include "easydel/base/document.h"
#include "easydel/base/error.h"
#include "easydel/base/simdjson.h"

namespace easydel {
namespace {

namespace ondemand = simdjson::ondemand;
constexpr int max_json_depth = 200;

class JsonReader {
 public:
  JsonReader(std::string_view text, std::string_view name) : name_(name), text_(text) {}

  Value document() {
    if (text_.size() == 0) wrong({1, 1}, "is empty");
    ondemand::parser parser;
    ondemand::document document;
    const auto began = parser.iterate(text_).get(document);
    if (began) fail(nullptr, began);
    current_ = [&document]() -> const char* {
      const char* at = nullptr;
      return document.current_location().get(at) ? nullptr : at;
    };
    ondemand::json_type type;
    std::string_view token;
    Value root;
    if (const auto error = document.raw_json_token().get(token)) fail(nullptr, error);
    const bool collection =
        !document.type().get(type) && (type == ondemand::json_type::array || type == ondemand::json_type::object);
    if (collection) {
      ondemand::value value;
      if (const auto error = document.get_value().get(value)) fail(token.data(), error);
      root = node(value, 0);
    } else {
      root = token.starts_with('"') ? text(document.get_string(), token) : scalar(token);
      const char* const end = token.data() + token.size();
      if (end < text_.data() + text_.size()) after_the_end(end);
      return root;
    }
    if (const char* rest = current_()) after_the_end(rest);
    return root;
  }

 private:
  Value node(ondemand::value& value, int depth) {
    const std::string_view token = value.raw_json_token();
    if (depth > max_json_depth)
      wrong(place_of(token.data()), str("is nested more than ", max_json_depth, " levels deep"));
    switch (token[0]) {
      case '{':
        return object(value, token, depth);
      case '[':
        return array(value, token, depth);
      case '"':
        return text(value.get_string(), token);
      default:
        return scalar(token);  // not parsed: the iterator skips it, so NaN is harmless
    }
  }

  Value array(ondemand::value& value, std::string_view token, int depth) {
    Value out{.kind = Value::Kind::list, .place = place_of(token.data())};
    ondemand::array array;
    if (const auto error = value.get_array().get(array)) fail(token.data(), error);
    for (auto&& item : array) {
      ondemand::value child;
      if (const auto error = item.get(child)) fail(nullptr, error);
      out.items.push_back(node(child, depth + 1));
    }
    return out;
  }

  Value object(ondemand::value& value, std::string_view token, int depth) {
    Value out{.kind = Value::Kind::map, .place = place_of(token.data())};
    ondemand::object object;
    if (const auto error = value.get_object().get(object)) fail(token.data(), error);
    std::unordered_set<std::string> seen;
    for (auto&& item : object) {
      ondemand::field field;
      if (const auto error = std::move(item).get(field)) fail(nullptr, error);
      const char* const at = field.key().raw() - 1;  // read first: it is gone after unescaped_key()
      const Place place = place_of(at);
      std::string_view key;
      if (const auto error = field.unescaped_key().get(key)) fail(at, error);
      std::string name(key);
      if (!seen.insert(name).second) wrong(place, "'" + name + "' is given twice", "keep one of them");
      ondemand::value& child = field.value();
      Value inner = node(child, depth + 1);
      out.entries.emplace_back(std::move(name), std::move(inner));
      out.key_places.push_back(place);
    }
    return out;
  }

  template <class Result>
  Value text(Result result, std::string_view token) {
    Value out{.kind = Value::Kind::text, .place = place_of(token.data())};
    std::string_view content;
    if (const auto error = std::move(result).get(content)) fail(token.data(), error);
    out.scalar = content;
    return out;
  }

  Value scalar(std::string_view token) {
    const Place place = place_of(token.data());
    while (!token.empty() && std::string_view(" \t\r\n").find(token.back()) != std::string_view::npos)
      token.remove_suffix(1);
    if (token.empty()) wrong(place, "is not JSON: a value is missing", "is the file complete?");
    if (token == "null") return {.place = place};
    Value out{.kind = Value::Kind::plain, .place = place, .scalar = std::string(token)};
    if (token == "true" || token == "false" || is_number(token)) return out;
    out.scalar = token == "NaN" ? ".nan" : token == "Infinity" ? ".inf" : token == "-Infinity" ? "-.inf" : "";
    if (out.scalar.empty()) wrong(place, str("is not JSON: '", token.substr(0, 40), "'"), "strings need double quotes");
    return out;
  }

  static bool is_number(std::string_view t) {
    const auto eat_digits = [&t] {
      const size_t count = std::min(t.find_first_not_of("0123456789"), t.size());
      t.remove_prefix(count);
      return count > 0;
    };
    if (t.starts_with('-')) t.remove_prefix(1);
    if (t.starts_with('0') ? (t.remove_prefix(1), false) : !eat_digits()) return false;
    if (t.starts_with('.') && (t.remove_prefix(1), !eat_digits())) return false;
    if (t.starts_with('e') || t.starts_with('E')) {
      t.remove_prefix(1);
      if (t.starts_with('-') || t.starts_with('+')) t.remove_prefix(1);
      if (!eat_digits()) return false;
    }
    return t.empty();
  }

  // Places are looked up in file order (except for errors), so that lines are counted once.
  Place place_of(const char* at) {
    const char* const begin = text_.data();
    if (!at || at < begin || at > begin + text_.size()) at = begin + text_.size();
    if (at < counted_to_ || !counted_to_) counted_to_ = line_begin_ = begin, line_ = 1;
    for (; counted_to_ < at; ++counted_to_)
      if (*counted_to_ == '\n') ++line_, line_begin_ = counted_to_ + 1;
    return {line_, int(at - line_begin_) + 1};
  }

  [[noreturn]] void fail(const char* at, simdjson::error_code error) {
    if (error == simdjson::MEMALLOC) throw std::bad_alloc();
    if (!at && current_) at = current_();
    std::string why = "is not JSON";
    if (error == simdjson::UTF8_ERROR) why = "is not UTF-8 text";
    if (error == simdjson::UNCLOSED_STRING) why = "is not JSON: a string is not closed";
    if (error == simdjson::UNESCAPED_CHARS) why = "is not JSON: a string contains a control character";
    if (error == simdjson::STRING_ERROR) why = "is not JSON: a string contains an invalid escape";
    if (error == simdjson::INCOMPLETE_ARRAY_OR_OBJECT) why = "is not JSON: a list or an object is not closed";
    if (error == simdjson::EMPTY) why = "is empty";
    const bool nowhere = !at && error != simdjson::INCOMPLETE_ARRAY_OR_OBJECT && error != simdjson::UNCLOSED_STRING;
    if (nowhere) refuse(FilePlace{std::string(name_)}, why);
    if (why == "is not JSON") unexpected(at);
    wrong(place_of(at), why);
  }
  // Says what is at a place that breaks the syntax, and what is usually wrong there.
  [[noreturn]] void unexpected(const char* at) {
    const char *const begin = text_.data(), *const end = begin + text_.size();
    while (at < end && is_blank(*at)) ++at;
    if (at >= end) wrong(place_of(at), "is not JSON: it ends too early", "is the file complete?");
    const char* before = at;
    while (before > begin && is_blank(*(before - 1))) --before;
    const char last = before > begin ? *(before - 1) : '\0', here = *at;
    const char* remedy = "";
    if (here == '\'')
      remedy = "texts and names need double quotes";
    else if (here == '/' || here == '#')
      remedy = "JSON has no comments";
    else if ((here == '}' || here == ']') && last == ',')
      remedy = "take away the comma before it";
    else if (last == '{' || last == ',')
      remedy = here == '"' ? "" : "names need double quotes";
    else if (last == '}' || last == ']' || last == '"' || std::isalnum(static_cast<unsigned char>(last)))
      remedy = here == ':' ? "" : "a comma is missing before it";
    wrong(place_of(at), str("is not JSON: unexpected '", here, "'"), remedy);
  }
  static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

  [[noreturn]] void after_the_end(const char* at) {
    const bool comment = *at == '/' || *at == '#';
    wrong(place_of(at), "there is more text after the end of the document", comment ? "JSON has no comments" : "");
  }
  [[noreturn]] void wrong(const Place& place, const std::string& what, const std::string& remedy = "") {
    refuse(FilePlace{std::string(name_), place.line, place.column}, what, remedy);
  }

  std::string_view name_;
  simdjson::padded_string text_;
  std::function<const char*()> current_;
  const char *counted_to_ = nullptr, *line_begin_ = nullptr;
  int line_ = 1;
};

}  // namespace

Value parse_json(std::string_view text, std::string_view name) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  return JsonReader(text, name).document();
}

}  // namespace easydel
