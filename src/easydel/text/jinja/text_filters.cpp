// Filters that reformat text: wordwrap, striptags, urlize, xmlattr, filesizeformat, urlencode.
#include <algorithm>
#include <cmath>
#include <set>

#include "easydel/text/jinja/filters.h"
#include "easydel/text/jinja/strings.h"
#include "easydel/text/tokenizers/regex.h"
#include "easydel/text/unicode.h"

namespace easydel::text::jinja {
namespace {

const std::string& text_of(const Var& v, std::string_view method) {
  if (v.is_undefined()) fail(v.as_string().empty() ? "a value is undefined" : v.as_string());
  if (!v.is_string()) fail("'", type_name(v), "' object has no attribute '", method, "'");
  return v.as_string();
}

bool matches(const Regex& regex, std::string_view text) {
  std::vector<Segment> parts;
  regex.find_all(text, parts);
  return parts.size() == 1 && parts[0].match;
}

// textwrap's chunks: words, possibly split after a hyphen, and the white space between them.
std::vector<std::string> chunks_of(const std::string& line, bool at_hyphens) {
  static const std::string space = "[\\t\\n\\x0b\\x0c\\r ]", no_space = "[^\\t\\n\\x0b\\x0c\\r ]", letter = "[^\\d\\W]";
  static const Regex simple(space + "+");
  static const Regex hyphens(space + "+|(?<=[\\w!\"'&.,?])-{2,}(?=\\w)|" + no_space + "+?(?:-(?:(?<=" + letter +
                             "{2}-)|(?<=" + letter + "-" + letter + "-))(?=" + letter + "-?" + letter +
                             ")|(?=" + space + "|\\z)|(?<=[\\w!\"'&.,?])(?=-{2,}\\w))");
  std::vector<Segment> parts;
  (at_hyphens ? hyphens : simple).find_all(line, parts);
  std::vector<std::string> out;
  for (const Segment& part : parts)
    if (part.end > part.begin) out.push_back(line.substr(part.begin, part.end - part.begin));
  return out;
}

bool is_blank_text(const std::string& s) { return strip(s, nullptr, 3).empty(); }

struct Wrap {
  int64_t width;
  bool break_long_words, break_on_hyphens;
};

// The lines of one paragraph, by textwrap's algorithm: greedy, dropping white space at the ends of lines.
std::vector<std::string> wrapped(const std::string& paragraph, const Wrap& how) {
  std::vector<std::u32string> chunks;
  for (const std::string& chunk : chunks_of(paragraph, how.break_on_hyphens)) chunks.push_back(to_utf32(chunk));
  std::reverse(chunks.begin(), chunks.end());
  const auto blank = [](const std::u32string& chunk) { return is_blank_text(to_utf8(chunk)); };
  const auto width = size_t(how.width);
  std::vector<std::string> lines;
  while (!chunks.empty()) {
    std::vector<std::u32string> line;
    size_t length = 0;
    if (!lines.empty() && blank(chunks.back())) chunks.pop_back();
    while (!chunks.empty() && length + chunks.back().size() <= width) {
      length += chunks.back().size();
      line.push_back(std::move(chunks.back()));
      chunks.pop_back();
    }
    if (!chunks.empty() && chunks.back().size() > width) {
      if (how.break_long_words) {
        std::u32string& chunk = chunks.back();
        size_t end = width - length;
        if (how.break_on_hyphens && chunk.size() > end) {
          const size_t hyphen = end == 0 ? std::u32string::npos : chunk.rfind(U'-', end - 1);
          if (hyphen != std::u32string::npos && hyphen > 0 && chunk.find_first_not_of(U'-') < hyphen) end = hyphen + 1;
        }
        line.push_back(chunk.substr(0, end));
        chunk.erase(0, end);
      } else if (line.empty()) {
        line.push_back(std::move(chunks.back()));
        chunks.pop_back();
      }
    }
    if (!line.empty() && blank(line.back())) line.pop_back();
    if (line.empty()) continue;
    std::string out;
    for (const std::u32string& chunk : line) out += to_utf8(chunk);
    lines.push_back(std::move(out));
  }
  return lines;
}

Var wordwrap(Interpreter& interpreter, const Var& v, const Arguments& a) {
  const std::string& source = text_of(v, "splitlines");
  const Wrap how{number(a, 0, "width", 79), flag(a, 1, "break_long_words", true), flag(a, 3, "break_on_hyphens", true)};
  const std::string between = text(a, 2, "wrapstring", "\n");
  std::string out;
  bool first = true;
  for (const std::string& paragraph : split_lines(source, false)) {
    if (!std::exchange(first, false)) out += between;
    if (how.width <= 0 && !paragraph.empty()) fail("invalid width ", how.width, " (must be > 0)");
    bool first_line = true;
    for (const std::string& line : wrapped(paragraph, how)) {
      interpreter.step();
      if (!std::exchange(first_line, false)) out += between;
      out += line;
      check_size(out.size());
    }
  }
  return Var::string(std::move(out));
}

// Numeric references, and the six most common names.
std::string unescaped(const std::string& text) {
  constexpr std::pair<std::string_view, char32_t> names[] = {{"lt", '<'},   {"gt", '>'},    {"amp", '&'},
                                                             {"quot", '"'}, {"apos", '\''}, {"nbsp", 0xA0}};
  std::string out;
  for (size_t i = 0; i < text.size();) {
    const size_t end = text[i] == '&' ? text.find(';', i) : std::string::npos;
    char32_t found = 0;
    if (end != std::string::npos && end - i < 12) {
      const std::string name = text.substr(i + 1, end - i - 1);
      for (const auto& [known, character] : names)
        if (name == known) found = character;
      if (name.size() > 1 && name[0] == '#') {
        const bool hex = (name[1] | 32) == 'x';
        char* stop = nullptr;
        const unsigned long code = std::strtoul(name.c_str() + (hex ? 2 : 1), &stop, hex ? 16 : 10);
        const bool valid = *stop == 0 && code < 0x110000 && !(code >= 0xD800 && code < 0xE000);
        if (*stop == 0) found = valid && code != 0 ? static_cast<char32_t>(code) : 0xFFFD;
      }
    }
    if (found)
      append_utf8(out, found);
    else
      out += text[i];
    i = found ? end + 1 : i + 1;
  }
  return out;
}

Var striptags(Interpreter&, const Var& v, const Arguments&) {
  const std::string source = to_text(v);
  std::string plain;
  size_t at = 0;
  for (size_t open; (open = source.find('<', at)) != std::string::npos;) {
    const bool comment = source.compare(open, 4, "<!--") == 0;
    const size_t close = comment ? source.find("-->", open + 4) : source.find('>', open);
    if (close == std::string::npos) break;
    plain += source.substr(at, open - at);
    at = close + (comment ? 3 : 1);
  }
  plain += source.substr(at);
  std::string out;
  for (const std::string& word : split(plain, nullptr, -1, false)) out += (out.empty() ? "" : " ") + word;
  return Var::string(unescaped(out));
}

Var xmlattr(Interpreter& interpreter, const Var& v, const Arguments& a) {
  if (!v.is_dict()) fail("'", type_name(v), "' object has no attribute 'items'");
  std::string out;
  for (const auto& [key, value] : v.as_dict().entries) {
    if (value.is_none() || value.is_undefined()) continue;
    if (!key.is_string()) fail("expected string or bytes-like object, got '", type_name(key), "'");
    const std::string& name = key.as_string();
    size_t at = 0;
    while (at < name.size()) {
      const char32_t c = next_character(name, at);
      if (c == '/' || c == '>' || c == '=' || is_space(c) || (c >= 0x1c && c <= 0x1f))
        fail("Invalid character in attribute name: ", repr(key));
    }
    out += (out.empty() ? "" : " ") + escape(name) + "=\"" +
           (value.is_markup() ? value.as_string() : escape(to_text(value))) + "\"";
    check_size(out.size());
  }
  if (!out.empty() && flag(a, 0, "autospace", true)) out.insert(0, " ");
  return Var::string(std::move(out), interpreter.autoescapes());
}

Var filesizeformat(Interpreter& interpreter, const Var& v, const Arguments& a) {
  const bool binary = flag(a, 0, "binary", false);
  if (!v.is_string() && !v.is_numeric())
    fail("float() argument must be a string or a real number, not '", type_name(v), "'");
  const Var none = Var();
  const Var converted = find_filter("float")->run(interpreter, v, Arguments{{none}, {}});
  if (converted.is_undefined()) fail("could not convert string to float: ", repr(v));
  const double bytes = converted.as_number(), base = binary ? 1024 : 1000;
  if (bytes == 1) return Var::string("1 Byte");
  if (bytes < base) {
    if (!std::isfinite(bytes)) fail("cannot convert float infinity to integer");
    return Var::string(to_text(find_filter("int")->run(interpreter, Var::number(bytes), {})) + " Bytes");
  }
  if (std::isnan(bytes)) return Var::string(binary ? "nan YiB" : "nan YB");
  constexpr std::string_view letters = "KMGTPEZY";
  double unit = base;
  size_t i = 0;
  do unit *= base;
  while (bytes >= unit && ++i < letters.size());
  i = std::min(i, letters.size() - 1);
  if (bytes >= unit) unit = std::pow(base, 9);
  const std::string prefix =
      binary ? std::string(1, letters[i]) + "iB" : std::string(1, i == 0 ? 'k' : letters[i]) + "B";
  char digits[400];
  std::snprintf(digits, sizeof digits, "%.1f", base * bytes / unit);
  return Var::string(std::string(digits) + " " + prefix);
}

// Punctuation around a url in running text.
struct Word {
  std::string head, middle, tail;
};

Word taken_apart(const std::string& word) {
  static const Regex head("\\A(?:[(<]|&lt;)+"), tail("(?:[)>.,\\n]|&gt;)+\\z");
  Word out{"", word, ""};
  std::vector<Segment> parts;
  head.find_all(out.middle, parts);
  if (!parts.empty() && parts[0].match) {
    out.head = out.middle.substr(0, parts[0].end);
    out.middle.erase(0, parts[0].end);
  }
  parts.clear();
  tail.find_all(out.middle, parts);
  if (!parts.empty() && parts.back().match) {
    out.tail = out.middle.substr(parts.back().begin);
    out.middle.erase(parts.back().begin);
  }
  const auto count = [](const std::string& text, const std::string& part) {
    size_t n = 0;
    for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) ++n;
    return n;
  };
  for (const auto& [open, close] : {std::pair<std::string, std::string>{"(", ")"}, {"<", ">"}, {"&lt;", "&gt;"}}) {
    const size_t opened = count(out.middle, open);
    if (opened <= count(out.middle, close)) continue;
    for (size_t n = std::min(opened, count(out.tail, close)); n > 0; --n) {
      const size_t end = out.tail.find(close) + close.size();
      out.middle += out.tail.substr(0, end);
      out.tail.erase(0, end);
    }
  }
  return out;
}

Var urlize(Interpreter& interpreter, const Var& v, const Arguments& a) {
  static const Regex address(
      "\\A(?:(?:https?://"
      "|www\\.)(?:(?:[\\w%-]+\\.)+)?(?:[a-z]{2,63}|xn--[\\w%]{2,59})|(?:[\\w%-]{2,63}\\.)+(?:com|net|int|edu|gov|org|"
      "info|mil)"
      "|https?://(?:\\d{1,3}(?:\\.\\d{1,3}){3}|\\[(?:[\\da-f]{0,4}:){2}(?:[\\da-f]{0,4}:?){1,6}\\]))(?::\\d{1,5})?(?:[/"
      "?#]\\S*)?\\z");
  static const Regex mail("\\A\\S+@\\w[\\w.-]*\\.\\w+\\z"), space("\\s+");
  const Var* limit = given(a, 0, "trim_url_limit");
  const int64_t most = number(a, 0, "trim_url_limit", -1);
  const bool trims = limit && !limit->is_none();
  std::set<std::string> relations{"noopener"};
  if (flag(a, 1, "nofollow", false)) relations.insert("nofollow");
  for (const std::string& each : split(text(a, 3, "rel", ""), nullptr, -1, false)) relations.insert(each);
  if (a.find(4, "extra_schemes")) fail("urlize: extra_schemes is not built yet");
  std::string rel;
  for (const std::string& each : relations) rel += (rel.empty() ? "" : " ") + each;
  const std::string target = text(a, 2, "target", "");
  const std::string attributes =
      " rel=\"" + escape(rel) + "\"" + (target.empty() ? "" : " target=\"" + escape(target) + "\"");
  const auto shown = [&](const std::string& url) {
    const Var end = Var::integer(most), whole = Var::string(url);
    if (!trims || int64_t(characters(url)) <= most) return url;
    return slice(whole, nullptr, &end, nullptr).as_string() + "...";
  };
  const std::string source = v.is_markup() ? v.as_string() : escape(to_text(v));
  std::vector<Segment> parts;
  space.find_all(source, parts);
  std::string out;
  for (const Segment& part : parts) {
    interpreter.step();
    const std::string word = source.substr(part.begin, part.end - part.begin);
    if (part.match) {
      out += word;
      continue;
    }
    auto [head, middle, tail] = taken_apart(word);
    if (matches(address, middle)) {
      const bool full = middle.starts_with("https://") || middle.starts_with("http://");
      middle = "<a href=\"" + std::string(full ? "" : "https://") + middle + "\"" + attributes + ">" + shown(middle) +
               "</a>";
    } else if (middle.starts_with("mailto:") && matches(mail, middle.substr(7))) {
      middle = "<a href=\"" + middle + "\">" + middle.substr(7) + "</a>";
    } else if (middle.find('@') != std::string::npos && !middle.starts_with("www.") && middle[0] != '@' &&
               middle.find(':') == std::string::npos && matches(mail, middle)) {
      middle = "<a href=\"mailto:" + middle + "\">" + middle + "</a>";
    }
    out += head + middle + tail;
    check_size(out.size());
  }
  return Var::string(std::move(out), interpreter.autoescapes());
}

std::string quoted(const std::string& text, bool query) {
  std::string out;
  for (const unsigned char c : text) {
    if (std::isalnum(c) || c == '_' || c == '.' || c == '-' || c == '~' || (c == '/' && !query)) {
      out += char(c);
    } else if (query && c == ' ') {
      out += '+';
    } else {
      char buffer[4];
      std::snprintf(buffer, sizeof buffer, "%%%02X", c);
      out += buffer;
    }
  }
  return out;
}

Var urlencode(Interpreter&, const Var& v, const Arguments&) {
  const bool pairs = v.is_dict() || v.is_array() || v.is_view() || v.is_undefined();
  if (!pairs) return Var::string(quoted(to_text(v), false));
  std::string out;
  const auto add = [&out](const Var& key, const Var& value) {
    out += (out.empty() ? "" : "&") + quoted(to_text(key), true) + "=" + quoted(to_text(value), true);
    check_size(out.size());
  };
  if (v.is_dict()) {
    for (const auto& [key, value] : v.as_dict().entries) add(key, value);
    return Var::string(out);
  }
  for (const Var& item : iterate(v)) {
    const std::vector<Var> pair = iterate(item);
    if (pair.size() != 2) fail(pair.size() < 2 ? "not enough" : "too many", " values to unpack (expected 2)");
    add(pair[0], pair[1]);
  }
  return Var::string(out);
}

const NamedFilter all_text_filters[] = {
    {"filesizeformat", filesizeformat},
    {"striptags", striptags},
    {"urlencode", urlencode},
    {"urlize", urlize},
    {"wordwrap", wordwrap},
    {"xmlattr", xmlattr},
};

}  // namespace

std::span<const NamedFilter> text_filters() { return all_text_filters; }

}  // namespace easydel::text::jinja
