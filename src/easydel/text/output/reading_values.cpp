// Reads values in JSON or Python notation and passes them on as JSON while they arrive. Nothing recurses: open brackets
// are kept in a string.
#include <algorithm>
#include <charconv>
#include <cmath>

#include "easydel/text/output/reading.h"
#include "easydel/text/unicode.h"

namespace easydel::text {
namespace {

constexpr size_t deepest = 200, kLongestWord = 400;

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

// Reads `digits` hexadecimal digits; -1: they are not.
Task<int64_t> read_hex(Incoming& in, size_t digits) {
  if (!co_await in.need(digits)) co_return -1;
  int64_t out = 0;
  for (size_t i = 0; i < digits; ++i) {
    const int digit = hex_digit(in.remaining()[i]);
    if (digit < 0) co_return -1;
    out = out * 16 + digit;
  }
  in.take(digits);
  co_return out;
}

bool is_high(int64_t c) { return c >= 0xD800 && c < 0xDC00; }
bool is_low(int64_t c) { return c >= 0xDC00 && c < 0xE000; }

// Reads an escape after the backslash into `decoded`. An unpaired surrogate becomes U+FFFD.
Task<bool> read_escape(Incoming& in, Notation notation, std::string& decoded) {
  if (!co_await in.need(1)) co_return false;
  const char kind = in.remaining()[0];
  in.take(1);
  const bool python = notation == Notation::python;
  constexpr std::string_view from = "\"\\/bfnrt", kTo = "\"\\/\b\f\n\r\t";
  if (const size_t at = from.find(kind); at != std::string_view::npos && !(python && kind == '/')) {
    decoded += kTo[at];
    co_return true;
  }
  if (kind == 'u' || (python && (kind == 'x' || kind == 'U'))) {
    int64_t c = co_await read_hex(in, kind == 'u' ? 4 : kind == 'x' ? 2 : 8);
    if (c < 0 || c > 0x10FFFF) co_return false;
    bool pair = false;
    if (is_high(c)) pair = co_await take_if(in, "\\u");
    if (pair) {
      const int64_t low = co_await read_hex(in, 4);
      if (low < 0) co_return false;
      if (is_low(low)) {
        c = 0x10000 + ((c - 0xD800) << 10) + (low - 0xDC00);
      } else {
        append_utf8(decoded, 0xFFFD);
        c = low;
      }
    }
    append_utf8(decoded, is_high(c) || is_low(c) ? 0xFFFD : static_cast<char32_t>(c));
    co_return true;
  }
  if (!python) {  // not an escape of JSON: models write \' and \$ for the character itself
    if (kind != '\'' && kind != '$') decoded += '\\';
    decoded += kind;
    co_return true;
  }
  constexpr std::string_view more = "'av", kMeaning = "'\a\v";
  if (kind == '\n') co_return true;
  if (const size_t at = more.find(kind); at != std::string_view::npos) {
    decoded += kMeaning[at];
  } else if (kind >= '0' && kind <= '7') {
    int value = kind - '0';
    for (int i = 0; i < 2; ++i) {
      const int digit = co_await in.peek();
      if (digit < '0' || digit > '7') break;
      value = value * 8 + (digit - '0');
      in.take(1);
    }
    append_utf8(decoded, static_cast<char32_t>(value));
  } else {
    decoded += '\\';
    decoded += kind;
  }
  co_return true;
}

// Reads a string, starting at its quote, in pieces of decoded text.
Task<bool> read_string_pieces(Incoming& in, Notation notation, const Take& take) {
  const char quote = in.remaining()[0];
  in.take(1);
  const std::string stops{quote, '\\'};
  std::string closing(1, quote);
  if (notation == Notation::python) {
    const bool triple = co_await take_if(in, std::string(2, quote));
    if (triple) closing = std::string(3, quote);
  }
  while (co_await in.need(1)) {
    const std::string_view remaining = in.remaining();
    const size_t plain = std::min(remaining.find_first_of(stops), remaining.size());
    if (plain > 0) {
      take(remaining.substr(0, plain));
      in.take(plain);
    } else if (remaining[0] == '\\') {
      in.take(1);
      std::string decoded;
      if (!co_await read_escape(in, notation, decoded)) co_return false;
      take(decoded);
    } else {
      const bool closed = co_await take_if(in, closing);
      if (closed) co_return true;
      take(std::string_view(&quote, 1));
      in.take(1);
    }
  }
  co_return false;
}

// Converts a number or a word to JSON; "": it is neither.
std::string word_as_json(std::string_view word, Notation notation) {
  for (const std::string_view same : {"true", "false", "null", "NaN", "Infinity", "-Infinity"})
    if (word == same) return std::string(word);
  const bool python = notation == Notation::python;
  if (python && (word == "True" || word == "False")) return word == "True" ? "true" : "false";
  if (python && word == "None") return "null";
  std::string digits(word);
  if (python) std::erase(digits, '_');
  if (python && digits.starts_with('+')) digits.erase(0, 1);
  const size_t first = digits.starts_with('-') ? 1 : 0;
  if (digits.size() > first + 2 && python && digits[first] == '0' && (digits[first + 1] | 32) == 'x') {
    long long value = 0;
    const auto [end, error] = std::from_chars(digits.data() + first + 2, digits.data() + digits.size(), value, 16);
    return error == std::errc() && end == digits.data() + digits.size() ? (first ? "-" : "") + std::to_string(value)
                                                                        : "";
  }
  double value = 0;
  if (digits.size() <= first || !(std::isdigit(static_cast<unsigned char>(digits[first])) || digits[first] == '.'))
    return "";
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (end != digits.data() + digits.size() || (error != std::errc() && error != std::errc::result_out_of_range))
    return "";
  // Python's notation: 007 is not a number, .5 and 5. get a zero.
  if (digits.size() > first + 1 && digits[first] == '0' && std::isdigit(static_cast<unsigned char>(digits[first + 1])))
    return "";
  if (digits[first] == '.') digits.insert(first, "0");
  if (const size_t dot = digits.find('.');
      dot != std::string::npos &&
      (dot + 1 == digits.size() || !std::isdigit(static_cast<unsigned char>(digits[dot + 1])))) {
    if (!python) return "";
    digits.insert(dot + 1, "0");
  }
  return digits;
}

Task<std::string> read_word(Incoming& in) {
  std::string word;
  while (word.size() < kLongestWord) {
    const int c = co_await in.peek();
    if (c < 0 || (!std::isalnum(c) && std::string_view("+-._").find(char(c)) == std::string_view::npos)) break;
    word += char(c);
    in.take(1);
  }
  co_return word;
}

bool opens_string(int c, Notation notation) { return c == '"' || (c == '\'' && notation == Notation::python); }

// Passes on a string as JSON; in Python, adjacent strings are one.
Task<bool> pass_string(Incoming& in, Notation notation, const Take& take) {
  take("\"");
  const Take escaped = [&take](std::string_view piece) {
    std::string out;
    append_json_escaped(out, piece);
    take(out);
  };
  while (true) {
    const bool good = co_await read_string_pieces(in, notation, escaped);
    if (!good) co_return false;
    if (notation == Notation::json) break;
    co_await skip_space(in);
    const int next = co_await in.peek();
    if (!opens_string(next, notation)) break;
  }
  take("\"");
  co_return true;
}

// Reads a key; in Python notation also a number or a word, which becomes a string as with json.dumps.
Task<bool> pass_key(Incoming& in, Notation notation, const Take& take) {
  const int first = co_await in.peek();
  if (opens_string(first, notation)) co_return co_await pass_string(in, notation, take);
  if (notation == Notation::json) co_return false;
  const std::string written = co_await read_word(in), word = word_as_json(written, notation);
  if (word.empty()) co_return false;
  take(json_quoted(word));
  co_return true;
}

Task<bool> pass_key_and_colon(Incoming& in, Notation notation, const Take& take) {
  const bool key = co_await pass_key(in, notation, take);
  if (!key) co_return false;
  co_await skip_space(in);
  const bool colon = co_await take_if(in, ":");
  if (colon) take(": ");
  co_return colon;
}

}  // namespace

void append_json_escaped(std::string& out, std::string_view text) {
  constexpr std::string_view from = "\"\\\b\f\n\r\t", kTo = "\"\\bfnrt";
  for (const char c : text) {
    if (const size_t at = from.find(c); at != std::string_view::npos) {
      out += '\\';
      out += kTo[at];
    } else if (static_cast<unsigned char>(c) < 0x20) {
      constexpr std::string_view hex = "0123456789abcdef";
      out += "\\u00";
      out += hex[static_cast<unsigned char>(c) >> 4];
      out += hex[c & 15];
    } else {
      out += c;
    }
  }
}

std::string json_quoted(std::string_view text) {
  std::string out = "\"";
  append_json_escaped(out, text);
  return out + "\"";
}

Task<bool> read_string(Incoming& in, Notation notation, std::string& out) {
  const Take take = [&out](std::string_view piece) { out += piece; };
  const int first = co_await in.peek();
  if (!opens_string(first, notation)) co_return false;
  co_return co_await read_string_pieces(in, notation, take);
}

Task<bool> read_value(Incoming& in, Notation notation, const Take& take) {
  const bool python = notation == Notation::python;
  std::string open;  // open brackets, innermost last
  while (true) {
    // A value begins here.
    co_await skip_space(in);
    int c = co_await in.peek();
    if (c == '{' || c == '[' || (c == '(' && python)) {
      if (open.size() >= deepest) co_return false;
      in.take(1);
      take(c == '{' ? "{" : "[");
      open += c == '{' ? '}' : c == '[' ? ']' : ')';
      co_await skip_space(in);
      const int next = co_await in.peek();
      if (next != open.back()) {
        bool good = c != '{';
        if (!good) good = co_await pass_key_and_colon(in, notation, take);
        if (!good) co_return false;
        continue;
      }
    } else if (opens_string(c, notation)) {
      const bool good = co_await pass_string(in, notation, take);
      if (!good) co_return false;
    } else {
      const std::string written = co_await read_word(in), word = word_as_json(written, notation);
      if (word.empty()) co_return false;
      take(word);
    }
    // A value has ended, or a bracket may close.
    while (true) {
      if (open.empty()) co_return true;
      co_await skip_space(in);
      c = co_await in.peek();
      if (c == open.back()) {
        in.take(1);
        take(c == '}' ? "}" : "]");
        open.pop_back();
        continue;
      }
      if (c != ',') co_return false;
      in.take(1);
      co_await skip_space(in);
      const int next = co_await in.peek();
      if (python && next == open.back()) continue;  // a trailing comma
      take(", ");
      break;
    }
    if (open.back() != '}') continue;
    co_await skip_space(in);
    const bool good = co_await pass_key_and_colon(in, notation, take);
    if (!good) co_return false;
  }
}

std::optional<std::string> value_as_json(std::string_view text, Notation notation) {
  Incoming in;
  std::string out;
  bool whole = false;
  const Take take = [&out](std::string_view piece) { out += piece; };
  auto run = [&]() -> Task<> {
    const bool good = co_await read_value(in, notation, take);
    co_await skip_space(in);
    const int next = co_await in.peek();
    whole = good && next < 0;
  };
  const Task<> task = run();
  in.feed(text);
  in.end();
  task.await_resume();
  if (!whole) return std::nullopt;
  return out;
}

}  // namespace easydel::text
