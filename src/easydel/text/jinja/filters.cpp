// Jinja2's filters (filters.py), and transformers' tojson. Filters over lists are in jinja_list_filters.cpp.
#include <algorithm>
#include <cmath>

#include "easydel/text/jinja/filters.h"
#include "easydel/text/jinja/parser.h"
#include "easydel/text/jinja/strings.h"
#include "easydel/text/unicode.h"

namespace easydel::text::jinja {

const Var* given(const Arguments& arguments, size_t position, std::string_view name) {
  return arguments.find(position, name);
}

bool flag(const Arguments& arguments, size_t position, std::string_view name, bool fallback) {
  const Var* value = given(arguments, position, name);
  return value ? value->truth() : fallback;
}

int64_t number(const Arguments& arguments, size_t position, std::string_view name, int64_t fallback) {
  const Var* value = given(arguments, position, name);
  if (!value || value->is_none()) return fallback;
  if (!value->is_integral()) fail("'", type_name(*value), "' object cannot be interpreted as an integer");
  return value->as_integer();
}

std::string text(const Arguments& arguments, size_t position, std::string_view name, std::string fallback) {
  const Var* value = given(arguments, position, name);
  return value && !value->is_none() ? to_text(*value) : fallback;
}

namespace {

[[noreturn]] void fail_undefined_value(const Var& v) {
  fail(v.as_string().empty() ? "a value is undefined" : v.as_string());
}

Var same_kind(std::string out, const Var& from) { return Var::string(std::move(out), from.is_markup()); }

Var absolute(Interpreter&, const Var& v, const Arguments&) {
  if (v.is_undefined()) fail_undefined_value(v);
  if (!v.is_numeric()) fail("bad operand type for abs(): '", type_name(v), "'");
  return v.type() == Var::Type::number ? Var::number(std::fabs(v.as_number()))
         : v.as_integer() < 0          ? binary("-", Var::integer(0), v)
                                       : Var::integer(v.as_integer());
}

Var attr(Interpreter& interpreter, const Var& v, const Arguments& a) {
  if (v.is_undefined()) fail_undefined_value(v);
  // Only attributes, never items.
  std::string name = text(a, 0, "name", "");
  if (v.is_dict()) {
    if (auto found = method(v, name)) return *found;
    return Var::undefined("'dict object' has no attribute '" + name + "'");
  }
  return interpreter.attribute(v, name);
}

Var default_(Interpreter&, const Var& v, const Arguments& a) {
  if (v.is_undefined() || (flag(a, 1, "boolean", false) && !v.truth())) {
    const Var* other = given(a, 0, "default_value");
    return other ? *other : Var::string("");
  }
  return v;
}

Var escape_filter(Interpreter&, const Var& v, const Arguments&) {
  return v.is_markup() ? v : Var::string(escape(to_text(v)), true);
}

Var whole_number(double d) {
  if (std::fabs(d) >= 9.2e18) fail("a whole number becomes too large");
  return Var::integer(int64_t(d));
}

// int(): Python's int() of strings; the default if it is not a number.
Var int_filter(Interpreter&, const Var& v, const Arguments& a) {
  Var fallback = given(a, 0, "default") ? *given(a, 0, "default") : Var::integer(0);
  if (v.is_undefined()) fail_undefined_value(v);
  if (v.is_integral()) return Var::integer(v.as_integer());
  if (v.type() == Var::Type::number) {
    if (std::isinf(v.as_number())) fail("cannot convert float infinity to integer");
    return std::isnan(v.as_number()) ? fallback : whole_number(v.as_number());
  }
  if (!v.is_string()) return fallback;
  std::string word = strip(v.as_string(), nullptr, 3);
  std::erase(word, '_');
  int64_t base = number(a, 1, "base", 10);
  size_t sign = !word.empty() && (word[0] == '-' || word[0] == '+') ? 1 : 0;
  if (base == 16 && word.compare(sign, 2, "0x") == 0) word.erase(sign, 2);
  if (base == 8 && word.compare(sign, 2, "0o") == 0) word.erase(sign, 2);
  if (base == 2 && word.compare(sign, 2, "0b") == 0) word.erase(sign, 2);
  if (base < 2 || base > 36) return fallback;
  char* end = nullptr;
  errno = 0;
  if (word.size() > sign && std::isalnum(static_cast<unsigned char>(word[sign]))) {
    long long whole = std::strtoll(word.c_str(), &end, int(base));
    if (*end == 0 && errno == 0) return Var::integer(whole);
    if (*end == 0) fail("a whole number becomes too large");
    double d = std::strtod(word.c_str(), &end);
    if (*end == 0 && std::isfinite(d)) return whole_number(d);
  }
  return fallback;
}

Var float_filter(Interpreter&, const Var& v, const Arguments& a) {
  Var fallback = given(a, 0, "default") ? *given(a, 0, "default") : Var::number(0.0);
  if (v.is_undefined()) fail_undefined_value(v);
  if (v.is_numeric()) return Var::number(v.as_number());
  if (!v.is_string()) return fallback;
  std::string word = strip(v.as_string(), nullptr, 3);
  if (word.empty() || word.find_first_of("xXpP") != std::string::npos) return fallback;
  char* end = nullptr;
  double d = std::strtod(word.c_str(), &end);
  return *end == 0 ? Var::number(d) : fallback;
}

Var format_filter(Interpreter&, const Var& v, const Arguments& a) {
  if (!a.named.empty() && !a.positional.empty()) fail("can't handle positional and keyword arguments at the same time");
  if (a.named.empty()) return same_kind(format_percent(to_text(v), Var::tuple(a.positional)), v);
  DictData data;
  for (auto& [key, value] : a.named) data.set(Var::string(key), value);
  return same_kind(format_percent(to_text(v), Var::dict(std::move(data))), v);
}

Var indent(Interpreter&, const Var& v, const Arguments& a) {
  if (!v.is_string()) binary("+", v, Var::string("\n"));  // fails as Python does
  const Var* width = given(a, 0, "width");
  std::string by = width && width->is_string()
                       ? width->as_string()
                       : std::string(size_t(std::clamp<int64_t>(number(a, 0, "width", 4), 0, 10000)), ' ');
  bool first = flag(a, 1, "first", false), blank = flag(a, 2, "blank", false);
  std::string s = to_text(v) + "\n", out;  // keeps a last empty line
  std::vector<std::string> lines = split_lines(s, false);
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i) out += "\n";
    bool indented = i == 0 ? first : blank || !lines[i].empty();
    out += (indented ? by : "") + lines[i];
    check_size(out.size());
  }
  return same_kind(std::move(out), v);
}

Var replace_filter(Interpreter& interpreter, const Var& v, const Arguments& a) {
  const Var *from = given(a, 0, "old"), *to = given(a, 1, "new");
  if (!from || !to) fail("replace() needs 'old' and 'new'");
  if (interpreter.autoescapes()) {
    const bool escapes = from->is_markup() || (to->is_markup() && !v.is_markup());
    const Var whole = escapes && !v.is_markup() ? Var::string(escape(to_text(v)), true) : v;
    const std::string by = whole.is_markup() && !to->is_markup() ? escape(to_text(*to)) : to_text(*to);
    return same_kind(replace(to_text(whole), to_text(*from), by, number(a, 2, "count", -1)), whole);
  }
  return same_kind(replace(to_text(v), text(a, 0, "old", ""), text(a, 1, "new", ""), number(a, 2, "count", -1)), v);
}

Var round_filter(Interpreter&, const Var& v, const Arguments& a) {
  if (!v.is_numeric()) fail("type ", type_name(v), " doesn't define __round__ method");
  int64_t digits = number(a, 0, "precision", 0);
  std::string how = text(a, 1, "method", "common");
  if (how != "common" && how != "ceil" && how != "floor") fail("method must be common, ceil or floor");
  if (how == "common") {
    if (v.is_integral() && digits >= 0) return Var::integer(v.as_integer());
    if (v.is_integral()) {
      const double scale = std::pow(10.0, double(-digits));
      return Var::integer(scale > 9e18 ? 0 : int64_t(std::nearbyint(v.as_number() / scale) * scale));
    }
    if (digits >= 0) {  // as in Python: the decimal nearest to the exact value, ties to even
      char buffer[512];
      std::snprintf(buffer, sizeof buffer, "%.*f", int(std::min<int64_t>(digits, 100)), v.as_number());
      return Var::number(std::strtod(buffer, nullptr));
    }
    double scale = std::pow(10.0, double(-digits));
    return Var::number(std::nearbyint(v.as_number() / scale) * scale);
  }
  double scale = std::pow(10.0, double(digits));
  double scaled = v.as_number() * scale;
  return Var::number((how == "ceil" ? std::ceil(scaled) : std::floor(scaled)) / scale);
}

// pprint.pformat for values that fit into a line: keys of dicts are sorted.
std::string pretty(const Var& v) {
  const auto in_order = [](auto&& self, const Var& value) -> Var {
    if (value.is_array()) {
      std::vector<Var> items;
      for (const Var& item : value.items()) items.push_back(self(self, item));
      return value.type() == Var::Type::list ? Var::list(std::move(items)) : Var::tuple(std::move(items));
    }
    if (!value.is_dict()) return value;
    auto entries = value.as_dict().entries;
    std::stable_sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) {
      const bool alike = (a.first.is_string() && b.first.is_string()) || (a.first.is_numeric() && b.first.is_numeric());
      return alike ? less(a.first, b.first) : type_name(a.first) < type_name(b.first);
    });
    DictData out;
    for (auto& [key, item] : entries) out.set(key, self(self, item));
    return Var::dict(std::move(out));
  };
  std::string out = repr(in_order(in_order, v));
  if (characters(out) > 80 && !v.is_numeric()) fail("pprint of more than a line is not built yet");
  return out;
}

// Words begin after whitespace and after - ( { [ <, as in Jinja2's title.
Var title_filter(Interpreter&, const Var& v, const Arguments&) {
  std::string out, word;
  auto flush = [&] {
    if (word.empty()) return;
    size_t at = 0;
    next_character(word, at);
    out += upper(word.substr(0, at)) + lower(word.substr(at));
    word.clear();
  };
  std::string s = to_text(v);
  for (size_t at = 0; at < s.size();) {
    size_t from = at;
    char32_t c = next_character(s, at);
    bool splits = is_space(c) || c == '-' || c == '(' || c == '{' || c == '[' || c == '<';
    if (splits) {
      flush();
      out += s.substr(from, at - from);
    } else {
      word += s.substr(from, at - from);
    }
  }
  flush();
  return same_kind(std::move(out), v);
}

Var tojson(Interpreter&, const Var& v, const Arguments& a) {
  JsonOptions options;
  options.ensure_ascii = flag(a, 0, "ensure_ascii", false);
  options.sort_keys = flag(a, 3, "sort_keys", false);
  const Var* indent = given(a, 1, "indent");
  options.indented = indent && !indent->is_none();
  if (options.indented)
    options.indent = indent->is_string()
                         ? indent->as_string()
                         : std::string(size_t(std::clamp<int64_t>(number(a, 1, "indent", 0), 0, 100)), ' ');
  options.item_separator = options.indented ? "," : ", ";
  options.key_separator = ": ";
  if (const Var* separators = given(a, 2, "separators"); separators && !separators->is_none()) {
    std::vector<Var> parts = iterate(*separators);
    if (parts.size() != 2 || !parts[0].is_string() || !parts[1].is_string()) fail("separators must be two strings");
    options.item_separator = parts[0].as_string();
    options.key_separator = parts[1].as_string();
  }
  return Var::string(to_json_text(v, options));
}

Var trim(Interpreter&, const Var& v, const Arguments& a) {
  const Var* set = given(a, 0, "chars");
  std::string letters = set && !set->is_none() ? to_text(*set) : "";
  return same_kind(strip(to_text(v), set && !set->is_none() ? &letters : nullptr, 3), v);
}

Var truncate(Interpreter&, const Var& v, const Arguments& a) {
  jinja::length(v);  // fails if it has no length
  int64_t length = number(a, 0, "length", 255), leeway = number(a, 3, "leeway", 5);
  bool kill = flag(a, 1, "killwords", false);
  std::string end = text(a, 2, "end", "..."), s = to_text(v);
  std::u32string all = to_utf32(s), tail = to_utf32(end);
  if (length < int64_t(tail.size())) fail("expected length >= ", tail.size(), ", got ", length);
  if (jinja::length(v) <= length + leeway) return v;
  if (!v.is_string()) fail("'", type_name(v), "' object cannot be cut");
  std::string head = to_utf8(all.substr(0, length - tail.size()));
  if (!kill) head = head.substr(0, head.rfind(' '));
  return same_kind(head + end, v);
}

Var wordcount(Interpreter&, const Var& v, const Arguments&) {
  std::string s = to_text(v);
  int64_t count = 0;
  bool inside = false;
  for (size_t at = 0; at < s.size();) {
    bool word = is_word(next_character(s, at));
    count += word && !inside;
    inside = word;
  }
  return Var::integer(count);
}

const NamedFilter filters[] = {
    {"abs", absolute},
    {"attr", attr},
    {"capitalize", [](Interpreter&, const Var& v, const Arguments&) { return same_kind(capitalize(to_text(v)), v); }},
    {"center",
     [](Interpreter&, const Var& v, const Arguments& a) {
       return same_kind(centered(to_text(v), number(a, 0, "width", 80), " ", '^'), v);
     }},
    {"default", default_},
    {"escape", escape_filter},
    {"float", float_filter},
    {"forceescape", [](Interpreter&, const Var& v, const Arguments&) { return Var::string(escape(to_text(v)), true); }},
    {"format", format_filter},
    {"indent", indent},
    {"int", int_filter},
    {"length", [](Interpreter&, const Var& v, const Arguments&) { return Var::integer(length(v)); }},
    {"lower", [](Interpreter&, const Var& v, const Arguments&) { return same_kind(lower(to_text(v)), v); }},
    {"pprint", [](Interpreter&, const Var& v, const Arguments&) { return Var::string(pretty(v)); }},
    {"replace", replace_filter},
    {"round", round_filter},
    {"safe", [](Interpreter&, const Var& v, const Arguments&) { return Var::string(to_text(v), true); }},
    {"string",
     [](Interpreter&, const Var& v, const Arguments&) { return v.is_string() ? v : Var::string(to_text(v)); }},
    {"title", title_filter},
    {"tojson", tojson},
    {"trim", trim},
    {"truncate", truncate},
    {"upper", [](Interpreter&, const Var& v, const Arguments&) { return same_kind(upper(to_text(v)), v); }},
    {"wordcount", wordcount},
};

constexpr std::pair<std::string_view, std::string_view> aliases[] = {
    {"d", "default"}, {"e", "escape"}, {"count", "length"}};

}  // namespace

const NamedFilter* find_filter(std::string_view name) {
  for (auto& [alias, canonical] : aliases)
    if (alias == name) name = canonical;
  for (const NamedFilter& row : filters)
    if (row.name == name) return &row;
  for (const auto& more : {list_filters(), text_filters()})
    for (const NamedFilter& row : more)
      if (row.name == name) return &row;
  return nullptr;
}

bool has_filter(std::string_view name) { return find_filter(name) != nullptr; }

}  // namespace easydel::text::jinja
