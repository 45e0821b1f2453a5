// Python's string operations.
#include "easydel/text/jinja/strings.h"

#include <utf8proc.h>

#include <algorithm>

#include "easydel/text/jinja/value.h"
#include "easydel/text/unicode.h"

namespace easydel::text::jinja {
namespace {

// Python's whitespace: Unicode's, and the four separators of ASCII.
bool is_blank(char32_t c) { return is_space(c) || (c >= 0x1c && c <= 0x1f); }

void append_upper(std::string& out, char32_t c) {
  if (c == 0xdf) {
    out += "SS";
  } else {
    append_utf8(out, static_cast<char32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(c))));
  }
}
void append_title(std::string& out, char32_t c) {
  if (c == 0xdf) {
    out += "Ss";
  } else {
    append_utf8(out, static_cast<char32_t>(utf8proc_totitle(static_cast<utf8proc_int32_t>(c))));
  }
}
void append_lower(std::string& out, char32_t c) {
  if (c == 0x130) {
    out += "i\xCC\x87";
  } else {
    append_utf8(out, lower_of(c));
  }
}

bool is_cased(char32_t c) {
  Category g = category_of(c);
  return g == Category::Lu || g == Category::Ll || g == Category::Lt;
}

}  // namespace

std::string upper(std::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size();) append_upper(out, next_character(text, at));
  return out;
}

std::string lower(std::string_view text) {
  std::string out;
  bool cased_before = false;
  for (size_t at = 0; at < text.size();) {
    char32_t c = next_character(text, at);
    size_t next = at;
    bool cased_after = at < text.size() && is_cased(next_character(text, next));
    if (c == 0x3a3 && cased_before && !cased_after)
      append_utf8(out, 0x3c2);  // a sigma at the end of a word
    else
      append_lower(out, c);
    cased_before = is_cased(c);
  }
  return out;
}

std::string capitalize(std::string_view text) {
  if (text.empty()) return "";
  size_t at = 0;
  std::string out;
  append_title(out, next_character(text, at));
  return out + lower(text.substr(at));
}

std::string title(std::string_view text) {
  std::string out;
  bool inside = false;
  for (size_t at = 0; at < text.size();) {
    char32_t c = next_character(text, at);
    if (inside)
      append_lower(out, c);
    else
      append_title(out, c);
    inside = is_cased(c);
  }
  return out;
}

std::string strip(std::string_view text, const std::string* set, int sides) {
  std::u32string letters = set ? to_utf32(*set) : U"";
  auto goes = [&](char32_t c) { return set ? letters.find(c) != std::u32string::npos : is_blank(c); };
  size_t begin = 0, end = text.size();
  while ((sides & 1) && begin < end) {
    size_t next = begin;
    if (!goes(next_character(text, next))) break;
    begin = next;
  }
  while ((sides & 2) && end > begin) {
    size_t last = end - 1;
    while (last > begin && (text[last] & 0xc0) == 0x80) --last;
    size_t at = last;
    if (!goes(next_character(text, at))) break;
    end = last;
  }
  return std::string(text.substr(begin, end - begin));
}

std::string replace(std::string_view text, std::string_view from, std::string_view to, int64_t max_count) {
  std::string out;
  if (max_count < 0) max_count = INT64_MAX;
  if (from.empty()) {  // between all characters
    for (size_t at = 0; max_count > 0; --max_count) {
      out += to;
      if (at >= text.size()) return out;
      size_t begin = at;
      next_character(text, at);
      out += text.substr(begin, at - begin);
      check_size(out.size());
      if (max_count == 1) return out + std::string(text.substr(at));
    }
    return std::string(text);
  }
  size_t last = 0;
  for (size_t at; max_count > 0 && (at = text.find(from, last)) != std::string_view::npos;
       last = at + from.size(), --max_count) {
    out.append(text, last, at - last).append(to);
    check_size(out.size());
  }
  return out.append(text, last);
}

namespace {

std::vector<std::string> split_blanks(std::string_view text, int64_t max_count, bool from_right) {
  std::vector<std::pair<size_t, size_t>> words;
  bool inside = false;
  for (size_t at = 0; at < text.size();) {
    size_t from = at;
    bool blank = is_blank(next_character(text, at));
    if (!blank && !inside) words.emplace_back(from, at);
    if (!blank) words.back().second = at;
    inside = !blank;
  }
  std::vector<std::string> out;
  auto n = int64_t(words.size());
  auto piece = [&](size_t begin, size_t end) { return std::string(text.substr(begin, end - begin)); };
  if (max_count < 0 || n <= max_count) {
    for (auto& [begin, end] : words) out.push_back(piece(begin, end));
    return out;
  }
  if (from_right) {
    out.push_back(piece(0, words[n - max_count - 1].second));
    for (int64_t i = n - max_count; i < n; ++i) out.push_back(piece(words[i].first, words[i].second));
  } else {
    for (int64_t i = 0; i < max_count; ++i) out.push_back(piece(words[i].first, words[i].second));
    out.push_back(piece(words[max_count].first, text.size()));
  }
  return out;
}

}  // namespace

std::vector<std::string> split(std::string_view text, const std::string* separator, int64_t max_count,
                               bool from_right) {
  if (!separator) return split_blanks(text, max_count, from_right);
  if (separator->empty()) fail("empty separator");
  std::vector<std::string> out;
  if (max_count < 0) max_count = INT64_MAX;
  if (from_right) {
    size_t end = text.size();
    for (; max_count > 0; --max_count) {
      size_t at = end < separator->size() ? std::string_view::npos : text.substr(0, end).rfind(*separator);
      if (at == std::string_view::npos) break;
      out.emplace_back(text.substr(at + separator->size(), end - at - separator->size()));
      end = at;
    }
    out.emplace_back(text.substr(0, end));
    std::reverse(out.begin(), out.end());
    return out;
  }
  size_t last = 0;
  for (size_t at; max_count > 0 && (at = text.find(*separator, last)) != std::string_view::npos; --max_count) {
    out.emplace_back(text.substr(last, at - last));
    last = at + separator->size();
  }
  out.emplace_back(text.substr(last));
  return out;
}

std::vector<std::string> split_lines(std::string_view text, bool keep_ends) {
  std::vector<std::string> out;
  size_t begin = 0;
  for (size_t at = 0; at < text.size();) {
    size_t from = at;
    char32_t c = next_character(text, at);
    bool ends = (c >= 0xa && c <= 0xd) || (c >= 0x1c && c <= 0x1e) || c == 0x85 || c == 0x2028 || c == 0x2029;
    if (!ends) continue;
    if (c == '\r' && at < text.size() && text[at] == '\n') ++at;
    out.emplace_back(text.substr(begin, (keep_ends ? at : from) - begin));
    begin = at;
  }
  if (begin < text.size()) out.emplace_back(text.substr(begin));
  return out;
}

std::string centered(const std::string& text, int64_t width, const std::string& fill, char align) {
  int64_t missing = width - count_characters(text);
  if (missing <= 0) return text;
  check_size(size_t(missing) * fill.size());
  // str.center puts the extra blank on the left only if the width is odd.
  int64_t left = align == '<' ? 0 : align == '>' ? missing : missing / 2 + (missing & width & 1);
  std::string out;
  for (int64_t i = 0; i < left; ++i) out += fill;
  out += text;
  for (int64_t i = left; i < missing; ++i) out += fill;
  return out;
}

}  // namespace easydel::text::jinja
