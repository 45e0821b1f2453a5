// Tries the alternatives of the patterns in order, character by character.
#include "easydel/text/tokenizers/scanners.h"

#include "easydel/text/unicode.h"

namespace easydel::text {
namespace {

enum Kind : uint8_t { letter, number, space, newline, other };

struct AsciiKinds {
  Kind kinds[128];
  constexpr AsciiKinds() : kinds() {
    for (int c = 0; c < 128; ++c) {
      bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
      kinds[c] = is_letter                            ? letter
                 : c >= '0' && c <= '9'               ? number
                 : c == '\r' || c == '\n'             ? newline
                 : is_space(static_cast<char32_t>(c)) ? space
                                                      : other;
    }
  }
};
constexpr AsciiKinds ascii;

struct Cursor {
  std::string_view text;
  const uint8_t* flags = code_point_flags();

  // Returns the kind of the character at `at` and moves `at` past it.
  Kind take(size_t& at) const {
    auto lead = static_cast<unsigned char>(text[at]);
    if (lead < 0x80) {
      ++at;
      return ascii.kinds[lead];
    }
    char32_t c = next_character(text, at);
    uint8_t g = flags[c] & 31;
    if (g >= 1 && g <= 5) return letter;
    if (g >= 9 && g <= 11) return number;
    return is_space(c) ? space : other;
  }
  Kind peek(size_t at) const { return take(at); }
  size_t run(size_t at, Kind kind) const {
    while (at < text.size()) {
      size_t next = at;
      if (take(next) != kind) break;
      at = next;
    }
    return at;
  }
  size_t symbols(size_t at) const { return run(at, other); }
};

// \s+(?!\S)|\s+ on the whitespace [at, end): all of it at the end of the text, otherwise all but the last character,
// or the only one. `before_last`: offset of the last character.
size_t spaces(std::string_view text, size_t at, size_t before_last, size_t end) {
  return end == text.size() || before_last == at ? end : before_last;
}

// The end of a contraction ('s 't 're 've 'm 'll 'd) that begins at `at`, or 0.
template <bool any_case>
size_t contraction(std::string_view text, size_t at) {
  auto byte = [&](size_t i) -> char {
    if (i >= text.size()) return 0;
    return any_case && text[i] >= 'A' && text[i] <= 'Z' ? char(text[i] + 32) : text[i];
  };
  char a = byte(at + 1), b = byte(at + 2);
  if (a == 's' || a == 't' || a == 'm' || a == 'd') return at + 2;
  if ((a == 'r' && b == 'e') || (a == 'v' && b == 'e') || (a == 'l' && b == 'l')) return at + 3;
  if (any_case && text.substr(at + 1).starts_with("\xC5\xBF")) return at + 3;  // case folding maps U+017F to s
  return 0;
}

void scan_gpt2(std::string_view text, std::vector<uint32_t>& ends) {
  Cursor cursor{text};
  for (size_t at = 0; at < text.size(); ends.push_back(uint32_t(at))) {
    if (text[at] == '\'')
      if (size_t end = contraction<false>(text, at)) {
        at = end;
        continue;
      }
    size_t next = at;
    Kind kind = cursor.take(next);
    if (text[at] == ' ' && next < text.size()) {
      size_t after = next;
      Kind second = cursor.take(after);
      if (second != space && second != newline) {
        at = cursor.run(after, second);
        continue;
      }
    }
    if (kind != space && kind != newline) {
      at = cursor.run(next, kind);
      continue;
    }
    size_t before_last = at, end = next;
    while (end < text.size()) {
      size_t following = end;
      Kind k = cursor.take(following);
      if (k != space && k != newline) break;
      before_last = end;
      end = following;
    }
    at = spaces(text, at, before_last, end);
  }
}

// Llama 3 (cl100k) with digits = 3, Qwen 2 and 3 with 1.
template <int digits>
void scan_cl100k(std::string_view text, std::vector<uint32_t>& ends) {
  Cursor cursor{text};
  for (size_t at = 0; at < text.size(); ends.push_back(uint32_t(at))) {
    if (text[at] == '\'')
      if (size_t end = contraction<true>(text, at)) {
        at = end;
        continue;
      }
    size_t next = at;
    Kind kind = cursor.take(next);
    if (kind == letter) {
      at = cursor.run(next, letter);
      continue;
    }
    if (kind == number) {
      for (int i = 1; i < digits && next < text.size(); ++i) {
        size_t following = next;
        if (cursor.take(following) != number) break;
        next = following;
      }
      at = next;
      continue;
    }
    Kind second = next < text.size() ? cursor.peek(next) : newline;
    if (kind != newline && second == letter && next < text.size()) {
      at = cursor.run(next, letter);
      continue;
    }
    if (kind == other || (text[at] == ' ' && next < text.size() && second == other)) {
      at = cursor.symbols(next);
      while (at < text.size() && (text[at] == '\r' || text[at] == '\n')) ++at;
      continue;
    }
    size_t before_last = at, end = next, after_newline = kind == newline ? next : 0;
    while (end < text.size()) {
      size_t following = end;
      Kind k = cursor.take(following);
      if (k != space && k != newline) break;
      before_last = end;
      end = following;
      if (k == newline) after_newline = end;
    }
    at = after_newline ? after_newline : spaces(text, at, before_last, end);
  }
}

}  // namespace

Scanner scanner_for(std::string_view pattern) {
  if (pattern == gpt2_pattern) return scan_gpt2;
  constexpr std::string_view head = R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|)";
  constexpr std::string_view tail = R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
  if (pattern.starts_with(head) && pattern.ends_with(tail) && pattern.size() >= head.size() + tail.size()) {
    auto middle = pattern.substr(head.size(), pattern.size() - head.size() - tail.size());
    if (middle == R"(\p{N}{1,3})") return scan_cl100k<3>;
    if (middle == R"(\p{N})") return scan_cl100k<1>;
  }
  return nullptr;
}

}  // namespace easydel::text
