// UTF-8 and properties of code points, by the versions of Unicode that Hugging Face's tokenizers use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace easydel::text {

// General categories, in the order of the tables.
enum class Category : uint8_t {
  Cn,
  Lu,
  Ll,
  Lt,
  Lm,
  Lo,
  Mn,
  Mc,
  Me,
  Nd,
  Nl,
  No,
  Pc,
  Pd,
  Ps,
  Pe,
  Pi,
  Pf,
  Po,
  Sm,
  Sc,
  Sk,
  So,
  Zs,
  Zl,
  Zp,
  Cc,
  Cf,
  Co
};

// One byte for each code point: category in 5 bits, then word, punctuation, mark. Built on first use.
const uint8_t* code_point_flags();
inline uint8_t flags_of(char32_t c) { return c < 0x110000 ? code_point_flags()[c] : 0; }
inline Category category_of(char32_t c) { return static_cast<Category>(flags_of(c) & 31); }
inline bool is_letter(char32_t c) {
  uint8_t g = flags_of(c) & 31;
  return g >= 1 && g <= 5;
}
inline bool is_number(char32_t c) {
  uint8_t g = flags_of(c) & 31;
  return g >= 9 && g <= 11;
}
inline bool is_word(char32_t c) { return flags_of(c) & 32; }
inline bool is_punctuation(char32_t c) { return flags_of(c) & 64; }  // includes ASCII symbols
inline bool is_mark(char32_t c) { return flags_of(c) & 128; }
constexpr bool is_space(char32_t c) {
  if (c < 0x80) return c == ' ' || (c >= 9 && c <= 13);
  return c == 0x85 || c == 0xa0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 ||
         c == 0x202f || c == 0x205f || c == 0x3000;
}

// Bytes of the character that begins with `lead`, in valid UTF-8.
constexpr size_t utf8_length(unsigned char lead) { return lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4; }

// Returns the character at `at` of valid UTF-8 and moves `at` past it.
inline char32_t next_character(std::string_view text, size_t& at) {
  auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  unsigned char lead = byte(at);
  if (lead < 0x80) return text[at++];
  if (lead < 0xe0) {
    at += 2;
    return (lead & 0x1fu) << 6 | (byte(at - 1) & 0x3fu);
  }
  if (lead < 0xf0) {
    at += 3;
    return (lead & 0x0fu) << 12 | (byte(at - 2) & 0x3fu) << 6 | (byte(at - 1) & 0x3fu);
  }
  at += 4;
  return (lead & 0x07u) << 18 | (byte(at - 3) & 0x3fu) << 12 | (byte(at - 2) & 0x3fu) << 6 | (byte(at - 1) & 0x3fu);
}
void append_utf8(std::string& out, char32_t c);
std::string to_utf8(std::u32string_view text);
std::u32string to_utf32(std::string_view text);  // `text` must be valid UTF-8
int64_t count_characters(std::string_view text);

// The length of the longest prefix of `text` that is valid UTF-8.
size_t valid_prefix(std::string_view text);
// Replaces each maximal part of an invalid sequence by U+FFFD, like lossy decoding in Python and Rust.
std::string replace_invalid(std::string_view text);
// The number of bytes of an incomplete character at the end that later bytes could complete; 0: none.
size_t incomplete_tail(std::string_view text);

bool is_kept_by_bert(char32_t c);  // a mark or format character that BertNormalizer keeps because its tables are older
char32_t lower_of(char32_t c);     // one to one; callers handle U+0130

// A character of a changed text. change 0: replaces one old character; 1: is new; -n: replaces one old character, and
// the next n are removed.
struct Changed {
  char32_t character;
  int change;
};
enum class Form : uint8_t { nfc, nfd, nfkc, nfkd };
std::vector<Changed> normalize(std::string_view text, Form form);
// True if `text` is certainly in NFC; false: unknown.
bool surely_nfc(std::string_view text);

// The end of the extended grapheme cluster (UAX 29) that begins at `at` of valid UTF-8.
size_t grapheme_end(std::string_view text, size_t at);

// The script, as SentencePiece uses it to split: kana count as Han; 0: blanks and characters without a script.
uint8_t script_of(char32_t c);

}  // namespace easydel::text
