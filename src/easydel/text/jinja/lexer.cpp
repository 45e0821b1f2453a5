// Jinja2's lexer (lexer.py): data, and tags with their contents.
#include "easydel/text/jinja/lexer.h"

#include <algorithm>

#include "easydel/base/error.h"
#include "easydel/text/unicode.h"

namespace easydel::text::jinja {
namespace {

using Kind = Lexeme::Kind;

// Converts "\r\n" and "\r" to "\n" and removes one newline at the end.
std::string normal_newlines(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r') {
      out += '\n';
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    } else {
      out += source[i];
    }
  }
  if (out.ends_with('\n')) out.pop_back();
  return out;
}

bool blank_at(std::string_view text, size_t at, size_t& next) {
  next = at;
  return at < text.size() && is_space(next_character(text, next));
}

class Lexer {
 public:
  Lexer(std::string_view source, const std::string& name)
      : source_(normal_newlines(valid_prefix(source) == source.size() ? std::string(source) : replace_invalid(source))),
        name_(name) {}

  std::vector<Lexeme> run() {
    bool line_starting = true;
    while (at_ < source_.size()) {
      size_t tag = next_tag(at_);
      if (tag == std::string::npos) {
        data(at_, source_.size());
        break;
      }
      char kind = source_[tag + 1];
      char sign = tag + 2 < source_.size() ? source_[tag + 2] : 0;
      size_t end = tag;
      if (sign == '-') {
        while (end > at_ && is_space_before(end)) end = before(end);
      } else if (sign != '+' && kind != '{') {
        size_t newline = end > at_ ? source_.rfind('\n', end - 1) : std::string::npos;
        bool in_text = newline != std::string::npos && newline >= at_;
        size_t from = in_text ? newline + 1 : at_;
        if (in_text || line_starting)
          if (all_blank(from, end)) end = from;
      }
      data(at_, end);
      at_ = tag + 2;
      if (sign == '-' || sign == '+') ++at_;
      if (kind == '#')
        comment(tag);
      else if (kind == '%' && raw_begins())
        raw(tag);
      else
        inside(tag, kind == '{');
      line_starting = at_ > 0 && source_[at_ - 1] == '\n';
    }
    push(Kind::end, "", source_.size());
    return std::move(out_);
  }

 private:
  [[noreturn]] void wrong(size_t at, const std::string& what, const std::string& remedy = "") {
    auto [line, column] = place(at);
    refuse(FilePlace{name_, line, column}, what, remedy);
  }

  std::pair<int, int> place(size_t at) {
    if (at < counted_) counted_ = 0, line_ = 1, line_begin_ = 0;
    for (; counted_ < at; ++counted_)
      if (source_[counted_] == '\n') ++line_, line_begin_ = counted_ + 1;
    return {line_, int(at - line_begin_) + 1};
  }

  void push(Kind kind, std::string text, size_t at) {
    auto [line, column] = place(std::min(at, source_.size()));
    out_.push_back({kind, std::move(text), line, column});
  }

  void data(size_t from, size_t end) {
    if (from < end) push(Kind::data, source_.substr(from, end - from), from);
  }

  size_t next_tag(size_t from) const {
    for (size_t at = from; (at = source_.find('{', at)) != std::string::npos; ++at)
      if (at + 1 < source_.size() && (source_[at + 1] == '{' || source_[at + 1] == '%' || source_[at + 1] == '#'))
        return at;
    return std::string::npos;
  }

  size_t before(size_t end) const {
    size_t at = end - 1;
    while (at > 0 && (source_[at] & 0xc0) == 0x80) --at;
    return at;
  }
  bool is_space_before(size_t end) const {
    size_t at = before(end);
    return is_space(next_character(source_, at));
  }
  bool all_blank(size_t from, size_t end) const {
    for (size_t at = from; at < end;)
      if (!is_space(next_character(source_, at))) return false;
    return true;
  }
  void skip_blank() {
    for (size_t next; blank_at(source_, at_, next);) at_ = next;
  }

  void comment(size_t tag) {
    size_t end = source_.find("#}", at_);
    if (end == std::string::npos) wrong(tag, "the comment has no end", "close it with '#}'");
    char sign = end > at_ ? source_[end - 1] : 0;
    at_ = end + 2;
    if (sign == '-')
      skip_blank();
    else if (sign != '+')
      skip_newline();
  }

  void skip_newline() {
    if (at_ < source_.size() && source_[at_] == '\n') ++at_;
  }

  // At the name of a tag: returns whether it is {% raw %}, and then moves at_ past that tag.
  bool raw_begins() {
    size_t at = at_, next;
    while (blank_at(source_, at, next)) at = next;
    if (source_.compare(at, 3, "raw") != 0) return false;
    at += 3;
    while (blank_at(source_, at, next)) at = next;
    bool strip = at < source_.size() && source_[at] == '-';
    if (strip) ++at;
    if (source_.compare(at, 2, "%}") != 0) return false;
    at_ = at + 2;
    if (strip) skip_blank();
    return true;
  }

  void raw(size_t tag) {
    for (size_t begin = at_; (begin = source_.find("{%", begin)) != std::string::npos; begin += 2) {
      size_t at = begin + 2, next;
      char sign = at < source_.size() ? source_[at] : 0;
      if (sign == '-' || sign == '+') ++at;
      while (blank_at(source_, at, next)) at = next;
      if (source_.compare(at, 6, "endraw") != 0) continue;
      at += 6;
      while (blank_at(source_, at, next)) at = next;
      char last = at < source_.size() ? source_[at] : 0;
      if (last == '-' || last == '+') ++at;
      if (source_.compare(at, 2, "%}") != 0) continue;
      size_t end = begin;
      if (sign == '-') {
        while (end > at_ && is_space_before(end)) end = before(end);
      } else if (sign != '+') {
        size_t newline = end > at_ ? source_.rfind('\n', end - 1) : std::string::npos;
        if (newline != std::string::npos && newline >= at_ && all_blank(newline + 1, end)) end = newline + 1;
      }
      data(at_, end);
      at_ = at + 2;
      if (last == '-')
        skip_blank();
      else if (last != '+')
        skip_newline();
      return;
    }
    wrong(tag, "{% raw %} has no end", "close it with {% endraw %}");
  }

  void inside(size_t tag, bool variable) {
    push(variable ? Kind::variable_begin : Kind::block_begin, "", tag);
    std::string open;  // open brackets
    const char* close = variable ? "}}" : "%}";
    while (true) {
      skip_blank();
      if (at_ >= source_.size())
        wrong(tag, variable ? "'{{' is not closed" : "'{%' is not closed",
              variable ? "close it with '}}'" : "close it with '%}'");
      char c = source_[at_];
      if (open.empty()) {
        bool minus = c == '-' && source_.compare(at_ + 1, 2, close) == 0;
        bool plus = !variable && c == '+' && source_.compare(at_ + 1, 2, close) == 0;
        if (minus || plus || source_.compare(at_, 2, close) == 0) {
          push(variable ? Kind::variable_end : Kind::block_end, "", at_);
          at_ += minus || plus ? 3 : 2;
          if (minus)
            skip_blank();
          else if (!variable && !plus)
            skip_newline();
          return;
        }
      }
      if ((c >= '0' && c <= '9'))
        numeral();
      else if (c == '_' || (c & 0x80) || is_word(static_cast<unsigned char>(c)))
        identifier();
      else if (c == '\'' || c == '"')
        quoted(c);
      else
        symbol(open);
    }
  }

  void identifier() {
    size_t from = at_;
    while (at_ < source_.size()) {
      size_t next = at_;
      char32_t c = next_character(source_, next);
      if (!is_word(c)) break;
      at_ = next;
    }
    if (at_ == from) wrong(from, "unexpected character");
    push(Kind::name, source_.substr(from, at_ - from), from);
  }

  void numeral() {
    size_t from = at_;
    auto digits = [&](const char* set) {
      while (at_ < source_.size() && (std::string_view(set).find(source_[at_]) != std::string_view::npos ||
                                      (source_[at_] == '_' && at_ > from && source_[at_ - 1] != '_')))
        ++at_;
    };
    auto text = [&] {
      std::string out = source_.substr(from, at_ - from);
      std::erase(out, '_');
      return out;
    };
    char base = source_[at_] == '0' && at_ + 1 < source_.size() ? char(source_[at_ + 1] | 0x20) : 0;
    if (base == 'x' || base == 'o' || base == 'b') {
      at_ += 2;
      digits(base == 'x' ? "0123456789abcdefABCDEF" : base == 'o' ? "01234567" : "01");
      std::string all = text();
      push(Kind::integer,
           std::to_string(std::strtoll(all.c_str() + 2, nullptr,
                                       base == 'x'   ? 16
                                       : base == 'o' ? 8
                                                     : 2)),
           from);
      return;
    }
    digits("0123456789");
    bool fraction = false;
    auto digit_at = [&](size_t at) { return at < source_.size() && source_[at] >= '0' && source_[at] <= '9'; };
    // `1.5` is a fraction, `a[0].b` and `1.attribute` are not.
    bool after_dot = from > 0 && source_[from - 1] == '.';
    if (!after_dot && at_ < source_.size() && source_[at_] == '.' && digit_at(at_ + 1)) {
      ++at_;
      digits("0123456789");
      fraction = true;
    }
    if (!after_dot && at_ < source_.size() && (source_[at_] | 0x20) == 'e') {
      size_t sign = at_ + 1 < source_.size() && (source_[at_ + 1] == '+' || source_[at_ + 1] == '-') ? 1 : 0;
      if (digit_at(at_ + 1 + sign)) {
        at_ += 1 + sign;
        digits("0123456789");
        fraction = true;
      }
    }
    push(fraction ? Kind::number : Kind::integer, text(), from);
  }

  // Decodes a string like Python's unicode-escape.
  void quoted(char quote) {
    size_t from = at_++;
    std::string out;
    auto code = [&](size_t digits, int base) {
      char32_t value = 0;
      size_t begin = at_;
      while (at_ < source_.size() && at_ - begin < digits) {
        char d = source_[at_];
        int digit = d >= '0' && d <= '9'                     ? d - '0'
                    : (d | 0x20) >= 'a' && (d | 0x20) <= 'f' ? (d | 0x20) - 'a' + 10
                                                             : 99;
        if (digit >= base) break;
        value = value * base + digit;
        ++at_;
      }
      if (base == 16 && at_ - begin != digits) wrong(begin, "the escape in this string is truncated");
      if (value > 0x10ffff || (value >= 0xd800 && value < 0xe000)) value = 0xfffd;
      append_utf8(out, value);
    };
    while (at_ < source_.size() && source_[at_] != quote) {
      char c = source_[at_++];
      if (c != '\\') {
        out += c;
        continue;
      }
      if (at_ >= source_.size()) break;
      char e = source_[at_++];
      switch (e) {
        case '\n':
          break;
        case '\\':
        case '\'':
        case '"':
          out += e;
          break;
        case 'a':
          out += '\a';
          break;
        case 'b':
          out += '\b';
          break;
        case 'f':
          out += '\f';
          break;
        case 'n':
          out += '\n';
          break;
        case 'r':
          out += '\r';
          break;
        case 't':
          out += '\t';
          break;
        case 'v':
          out += '\v';
          break;
        case 'x':
          code(2, 16);
          break;
        case 'u':
          code(4, 16);
          break;
        case 'U':
          code(8, 16);
          break;
        case '0':
        case '1':
        case '2':
        case '3':
        case '4':
        case '5':
        case '6':
        case '7':
          --at_;
          code(3, 8);
          break;
        default:
          out += '\\', out += e;
      }
    }
    if (at_ >= source_.size()) wrong(from, "the string has no end", str("close it with ", quote));
    ++at_;
    push(Kind::text, std::move(out), from);
  }

  void symbol(std::string& open) {
    size_t from = at_;
    for (std::string_view two : {"//", "**", "==", "!=", "<=", ">="})
      if (source_.compare(at_, 2, two) == 0) {
        at_ += 2;
        return push(Kind::symbol, std::string(two), from);
      }
    char c = source_[at_];
    if (std::string_view("+-/*%~[](){}<>=.:|,;").find(c) == std::string_view::npos)
      wrong(from, str("unexpected character '", c, "'"));
    if (c == '(') open += ')';
    if (c == '[') open += ']';
    if (c == '{') open += '}';
    if (c == ')' || c == ']' || c == '}') {
      if (open.empty()) wrong(from, str("unexpected '", c, "'"));
      if (open.back() != c) wrong(from, str("unexpected '", c, "'"), str("'", open.back(), "' would fit"));
      open.pop_back();
    }
    ++at_;
    push(Kind::symbol, std::string(1, c), from);
  }

  std::string source_, name_;
  std::vector<Lexeme> out_;
  size_t at_ = 0, counted_ = 0, line_begin_ = 0;
  int line_ = 1;
};

}  // namespace

std::vector<Lexeme> lex(std::string_view source, const std::string& name) { return Lexer(source, name).run(); }

}  // namespace easydel::text::jinja
