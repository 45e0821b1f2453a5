// The methods of strings, lists, dicts and numbers that a sandboxed template may call.
#include <algorithm>
#include <cmath>

#include "easydel/text/jinja/interpreter.h"
#include "easydel/text/jinja/strings.h"
#include "easydel/text/unicode.h"

namespace easydel::text::jinja {
namespace {

const std::string& text_at(const Arguments& arguments, size_t position, std::string_view name = "") {
  const Var* value = arguments.find(position, name);
  if (!value || !value->is_string())
    fail("argument ", position + 1, " must be str, not ", value ? type_name(*value) : "missing");
  return value->as_string();
}

const std::string* optional_text(const Arguments& arguments, size_t position, std::string_view name) {
  const Var* value = arguments.find(position, name);
  return !value || value->is_none() ? nullptr : &text_at(arguments, position, name);
}

int64_t integer_at(const Arguments& arguments, size_t position, std::string_view name, int64_t fallback) {
  const Var* value = arguments.find(position, name);
  if (!value || value->is_none()) return fallback;
  if (!value->is_integral()) fail("'", type_name(*value), "' object cannot be interpreted as an integer");
  return value->as_integer();
}

Var strings(std::vector<std::string> parts) {
  std::vector<Var> out;
  for (std::string& part : parts) out.push_back(Var::string(std::move(part)));
  return Var::list(std::move(out));
}

template <class Predicate>
bool all_characters(const std::string& text, Predicate&& holds) {
  for (size_t at = 0; at < text.size();)
    if (!holds(next_character(text, at))) return false;
  return !text.empty();
}

bool cased(const std::string& text, Category wanted) {
  bool any = false;
  for (size_t at = 0; at < text.size();) {
    Category g = category_of(next_character(text, at));
    if (g == wanted)
      any = true;
    else if (g == Category::Lu || g == Category::Ll || g == Category::Lt)
      return false;
  }
  return any;
}

// The part of `text` that find, index and count search, and its beginning (in bytes and characters).
struct Window {
  std::string_view text;
  int64_t begin;
};
Window window(const std::string& text, const Arguments& arguments) {
  int64_t n = int64_t(characters(text));
  auto clip = [&](int64_t i) { return std::clamp<int64_t>(i < 0 ? i + n : i, 0, n); };
  int64_t begin = clip(integer_at(arguments, 1, "", 0)), end = clip(integer_at(arguments, 2, "", n));
  size_t from = 0, to = 0;
  for (int64_t i = 0; i < begin; ++i) next_character(text, from);
  to = from;
  for (int64_t i = begin; i < end; ++i) next_character(text, to);
  return {std::string_view(text).substr(from, to - from), begin};
}

int64_t find_in(const std::string& text, const Arguments& arguments, bool last) {
  Window part = window(text, arguments);
  size_t at = last ? part.text.rfind(text_at(arguments, 0)) : part.text.find(text_at(arguments, 0));
  return at == std::string_view::npos ? -1 : part.begin + count_characters(part.text.substr(0, at));
}

bool affixed(const std::string& text, const Arguments& arguments, bool at_start) {
  const Var* wanted = arguments.find(0, "");
  if (!wanted) fail("an argument is missing");
  std::vector<Var> all = wanted->type() == Var::Type::tuple ? wanted->items() : std::vector<Var>{*wanted};
  Window part = window(text, arguments);
  for (const Var& affix : all) {
    if (!affix.is_string()) fail("first arg must be str or a tuple of str, not ", type_name(affix));
    if (at_start ? part.text.starts_with(affix.as_string()) : part.text.ends_with(affix.as_string())) return true;
  }
  return false;
}

Var partitioned(const std::string& text, const std::string& separator, bool last) {
  if (separator.empty()) fail("empty separator");
  size_t at = last ? text.rfind(separator) : text.find(separator);
  auto part = [](std::string s) { return Var::string(std::move(s)); };
  if (at == std::string::npos)
    return last ? Var::tuple({part(""), part(""), part(text)}) : Var::tuple({part(text), part(""), part("")});
  return Var::tuple({part(text.substr(0, at)), part(separator), part(text.substr(at + separator.size()))});
}

using StringMethod = Var (*)(const std::string&, const Arguments&, Interpreter&);
struct Row {
  std::string_view name;
  StringMethod run;
};
const std::string blank = " ";
std::string filled(const std::string& text, const Arguments& arguments, char align) {
  const std::string* fill = optional_text(arguments, 1, "fillchar");
  if (fill && characters(*fill) != 1) fail("The fill character must be exactly one character long");
  return centered(text, integer_at(arguments, 0, "width", 0), fill ? *fill : blank, align);
}

const Row string_methods[] = {
    {"strip", [](auto& s, auto& a, auto&) { return Var::string(strip(s, optional_text(a, 0, ""), 3)); }},
    {"lstrip", [](auto& s, auto& a, auto&) { return Var::string(strip(s, optional_text(a, 0, ""), 1)); }},
    {"rstrip", [](auto& s, auto& a, auto&) { return Var::string(strip(s, optional_text(a, 0, ""), 2)); }},
    {"split",
     [](auto& s, auto& a, auto&) {
       return strings(split(s, optional_text(a, 0, "sep"), integer_at(a, 1, "maxsplit", -1), false));
     }},
    {"rsplit",
     [](auto& s, auto& a, auto&) {
       return strings(split(s, optional_text(a, 0, "sep"), integer_at(a, 1, "maxsplit", -1), true));
     }},
    {"splitlines",
     [](auto& s, auto& a, auto&) {
       const Var* keep = a.find(0, "keepends");
       return strings(split_lines(s, keep && keep->truth()));
     }},
    {"startswith", [](auto& s, auto& a, auto&) { return Var::boolean(affixed(s, a, true)); }},
    {"endswith", [](auto& s, auto& a, auto&) { return Var::boolean(affixed(s, a, false)); }},
    {"replace",
     [](auto& s, auto& a, auto&) {
       return Var::string(replace(s, text_at(a, 0), text_at(a, 1), integer_at(a, 2, "count", -1)));
     }},
    {"upper", [](auto& s, auto&, auto&) { return Var::string(upper(s)); }},
    {"lower", [](auto& s, auto&, auto&) { return Var::string(lower(s)); }},
    {"casefold", [](auto& s, auto&, auto&) { return Var::string(replace(lower(s), "\xC3\x9F", "ss", -1)); }},
    {"title", [](auto& s, auto&, auto&) { return Var::string(title(s)); }},
    {"capitalize", [](auto& s, auto&, auto&) { return Var::string(capitalize(s)); }},
    {"swapcase",
     [](auto& s, auto&, auto&) {
       std::string out;
       for (size_t at = 0; at < s.size();) {
         size_t from = at;
         bool big = category_of(next_character(s, at)) == Category::Lu;
         std::string one = s.substr(from, at - from);
         out += big ? lower(one) : upper(one);
       }
       return Var::string(out);
     }},
    {"find", [](auto& s, auto& a, auto&) { return Var::integer(find_in(s, a, false)); }},
    {"rfind", [](auto& s, auto& a, auto&) { return Var::integer(find_in(s, a, true)); }},
    {"index",
     [](auto& s, auto& a, auto&) {
       int64_t at = find_in(s, a, false);
       if (at < 0) fail("substring not found");
       return Var::integer(at);
     }},
    {"rindex",
     [](auto& s, auto& a, auto&) {
       int64_t at = find_in(s, a, true);
       if (at < 0) fail("substring not found");
       return Var::integer(at);
     }},
    {"count",
     [](auto& s, auto& a, auto&) {
       Window part = window(s, a);
       const std::string& wanted = text_at(a, 0);
       if (wanted.empty()) return Var::integer(count_characters(part.text) + 1);
       int64_t count = 0;
       for (size_t at = 0; (at = part.text.find(wanted, at)) != std::string_view::npos; at += wanted.size()) ++count;
       return Var::integer(count);
     }},
    {"join",
     [](auto& s, auto& a, auto&) {
       const Var* items = a.find(0, "");
       if (!items) fail("join() takes exactly one argument (0 given)");
       std::string out;
       size_t i = 0;
       for (const Var& item : iterate(*items)) {
         if (!item.is_string()) fail("sequence item ", i, ": expected str instance, ", type_name(item), " found");
         out += (i++ ? s : "") + item.as_string();
         check_size(out.size());
       }
       return Var::string(out);
     }},
    {"format", [](auto& s, auto& a, auto& interpreter) { return Var::string(format_braces(s, a, interpreter)); }},
    {"format_map",
     [](auto& s, auto& a, auto& interpreter) {
       Arguments named;
       if (a.positional.size() != 1 || !a.positional[0].is_dict()) fail("format_map() takes a mapping");
       for (auto& [key, value] : a.positional[0].as_dict().entries) named.named.emplace_back(to_text(key), value);
       return Var::string(format_braces(s, named, interpreter));
     }},
    {"isdigit",
     [](auto& s, auto&, auto&) {
       return Var::boolean(all_characters(
           s, [](char32_t c) { return category_of(c) == Category::Nd || c == 0xb2 || c == 0xb3 || c == 0xb9; }));
     }},
    {"isprintable",
     [](auto& s, auto&, auto&) {
       return Var::boolean(s.empty() || all_characters(s, [](char32_t c) {
                             const Category category = category_of(c);
                             const bool hidden = category == Category::Cc || category == Category::Cf ||
                                                 category == Category::Co || category == Category::Cn ||
                                                 category == Category::Zl || category == Category::Zp ||
                                                 category == Category::Zs;
                             return c == ' ' || !hidden;
                           }));
     }},
    {"isdecimal",
     [](auto& s, auto&, auto&) {
       return Var::boolean(all_characters(s, [](char32_t c) { return category_of(c) == Category::Nd; }));
     }},
    {"isnumeric", [](auto& s, auto&, auto&) { return Var::boolean(all_characters(s, is_number)); }},
    {"isalpha", [](auto& s, auto&, auto&) { return Var::boolean(all_characters(s, is_letter)); }},
    {"isalnum",
     [](auto& s, auto&, auto&) {
       return Var::boolean(all_characters(s, [](char32_t c) { return is_letter(c) || is_number(c); }));
     }},
    {"isspace",
     [](auto& s, auto&, auto&) {
       return Var::boolean(all_characters(s, [](char32_t c) { return is_space(c) || (c >= 0x1c && c <= 0x1f); }));
     }},
    {"isupper", [](auto& s, auto&, auto&) { return Var::boolean(cased(s, Category::Lu)); }},
    {"islower", [](auto& s, auto&, auto&) { return Var::boolean(cased(s, Category::Ll)); }},
    {"istitle", [](auto& s, auto&, auto&) { return Var::boolean(!s.empty() && title(s) == s && lower(s) != s); }},
    {"isascii",
     [](auto& s, auto&, auto&) { return Var::boolean(characters(s) == s.size() && valid_prefix(s) == s.size()); }},
    {"isidentifier",
     [](auto& s, auto&, auto&) { return Var::boolean(all_characters(s, is_word) && !(s[0] >= '0' && s[0] <= '9')); }},
    {"zfill",
     [](auto& s, auto& a, auto&) {
       bool sign = !s.empty() && (s[0] == '-' || s[0] == '+');
       std::string rest = sign ? s.substr(1) : s;
       return Var::string((sign ? s.substr(0, 1) : "") + centered(rest, integer_at(a, 0, "width", 0) - sign, "0", '>'));
     }},
    {"ljust", [](auto& s, auto& a, auto&) { return Var::string(filled(s, a, '<')); }},
    {"rjust", [](auto& s, auto& a, auto&) { return Var::string(filled(s, a, '>')); }},
    {"center", [](auto& s, auto& a, auto&) { return Var::string(filled(s, a, '^')); }},
    {"partition", [](auto& s, auto& a, auto&) { return partitioned(s, text_at(a, 0), false); }},
    {"rpartition", [](auto& s, auto& a, auto&) { return partitioned(s, text_at(a, 0), true); }},
    {"removeprefix",
     [](auto& s, auto& a, auto&) {
       const std::string& affix = text_at(a, 0);
       return Var::string(s.starts_with(affix) ? s.substr(affix.size()) : s);
     }},
    {"removesuffix",
     [](auto& s, auto& a, auto&) {
       const std::string& affix = text_at(a, 0);
       return Var::string(s.ends_with(affix) ? s.substr(0, s.size() - affix.size()) : s);
     }},
    {"expandtabs",
     [](auto& s, auto& a, auto&) {
       int64_t size = std::clamp<int64_t>(integer_at(a, 0, "tabsize", 8), 0, 1000), column = 0;
       std::string out;
       for (char c : s) {
         if (c == '\t') {
           int64_t fill = size ? size - column % size : 0;
           out.append(fill, ' ');
           column += fill;
         } else {
           out += c;
           column = c == '\n' || c == '\r' ? 0 : column + ((c & 0xc0) != 0x80);
         }
       }
       return Var::string(out);
     }},
};

std::vector<Var> pairs_of(const DictData& data) {
  std::vector<Var> out;
  for (auto& [key, value] : data.entries) out.push_back(Var::tuple({key, value}));
  return out;
}

// Python's methods take arguments by position, except for these.
bool takes_names(std::string_view name) {
  for (std::string_view known : {"split", "rsplit", "splitlines", "expandtabs", "format"})
    if (known == name) return true;
  return false;
}

Var bound(std::string_view name, Function::Body body) {
  return Var::object(std::make_shared<Function>(std::string(name), std::move(body)));
}

}  // namespace

std::optional<Var> method(const Var& object, std::string_view name) {
  if (object.is_string()) {
    for (const Row& row : string_methods)
      if (row.name == name)
        return bound(name, [object, row](Interpreter& interpreter, const Arguments& arguments) {
          if (!arguments.named.empty() && !takes_names(row.name))
            fail("str.", row.name, "() takes no keyword arguments");
          Var out = row.run(object.as_string(), arguments, interpreter);
          // Methods of a Markup return a Markup.
          return out.is_string() && object.is_markup() ? Var::string(out.as_string(), true) : out;
        });
    return std::nullopt;
  }
  if (object.is_dict()) {
    if (name == "items")
      return bound(name, [object](Interpreter&, const Arguments&) {
        return Var::view("dict_items", pairs_of(object.as_dict()));
      });
    if (name == "keys")
      return bound(name, [object](Interpreter&, const Arguments&) { return Var::view("dict_keys", iterate(object)); });
    if (name == "values")
      return bound(name, [object](Interpreter&, const Arguments&) {
        std::vector<Var> out;
        for (auto& entry : object.as_dict().entries) out.push_back(entry.second);
        return Var::view("dict_values", std::move(out));
      });
    if (name == "get")
      return bound(name, [object](Interpreter&, const Arguments& arguments) {
        if (!arguments.named.empty()) fail("dict.get() takes no keyword arguments");
        if (arguments.positional.empty()) fail("get expected at least 1 argument, got 0");
        if (const Var* value = object.as_dict().find(arguments.positional[0])) return *value;
        return arguments.positional.size() > 1 ? arguments.positional[1] : Var::none();
      });
    if (name == "copy") return bound(name, [object](Interpreter&, const Arguments&) { return object; });
    return std::nullopt;
  }
  if (object.is_array()) {
    if (name == "count")
      return bound(name, [object](Interpreter&, const Arguments& arguments) {
        if (arguments.positional.size() != 1) fail("count() takes exactly one argument");
        return Var::integer(std::count_if(object.items().begin(), object.items().end(),
                                          [&](const Var& item) { return equal(item, arguments.positional[0]); }));
      });
    if (name == "index")
      return bound(name, [object](Interpreter&, const Arguments& arguments) {
        if (arguments.positional.empty()) fail("index expected at least 1 argument, got 0");
        for (size_t i = 0; i < object.items().size(); ++i)
          if (equal(object.items()[i], arguments.positional[0])) return Var::integer(int64_t(i));
        fail(repr(arguments.positional[0]), " is not in list");
      });
    if (name == "copy" && object.type() == Var::Type::list)
      return bound(name, [object](Interpreter&, const Arguments&) { return object; });
    return std::nullopt;
  }
  if (object.type() == Var::Type::number && name == "is_integer")
    return bound(name, [object](Interpreter&, const Arguments&) {
      return Var::boolean(std::floor(object.as_number()) == object.as_number());
    });
  return std::nullopt;
}

}  // namespace easydel::text::jinja
