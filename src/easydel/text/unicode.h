// UTF-8 and the properties of code points, as Hugging Face's tokenizers see them (their versions of Unicode).
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

// One byte for each code point: category in 5 bits, word, punctuation, mark. Built at first use.
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
inline bool is_punctuation(char32_t c) { return flags_of(c) & 64; }  // ASCII symbols count
inline bool is_mark(char32_t c) { return flags_of(c) & 128; }
constexpr bool is_space(char32_t c) {
  if (c < 0x80) return c == ' ' || (c >= 9 && c <= 13);
  return c == 0x85 || c == 0xa0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 ||
         c == 0x202f || c == 0x205f || c == 0x3000;
}

// Bytes of the character that begins with `lead`, in valid UTF-8.
constexpr size_t utf8_length(unsigned char lead) { return lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4; }

// The character at `at` of valid UTF-8, and `at` moved past it.
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
std::u32string to_utf32(std::string_view text);  // of valid UTF-8
int64_t count_characters(std::string_view text);

// The length of the valid UTF-8 that `text` begins with.
size_t valid_prefix(std::string_view text);
// Each maximal part of an invalid sequence becomes U+FFFD, as Python's and Rust's lossy decoding do.
std::string replace_invalid(std::string_view text);
// Whether a string that ends in an incomplete character could still become valid: how many bytes to hold back.
size_t incomplete_tail(std::string_view text);

bool is_kept_by_bert(char32_t c);  // a mark or format character that BertNormalizer does not know
char32_t lower_of(char32_t c);     // one to one; U+0130 is the caller's business

// A character of a changed text. change 0: takes the place of one old character; 1: is new; -n: takes the place of
// one and n more that vanish.
struct Changed {
  char32_t character;
  int change;
};
enum class Form : uint8_t { nfc, nfd, nfkc, nfkd };
std::vector<Changed> normalize(std::string_view text, Form form);
// True where `text` is certainly in NFC (false: it may be too).
bool surely_nfc(std::string_view text);

// Where the extended grapheme cluster (UAX 29) that begins at `at` of valid UTF-8 ends.
size_t grapheme_end(std::string_view text, size_t at);

// The script as SentencePiece cuts by it: kana count as Han, blanks and what has no script are 0.
uint8_t script_of(char32_t c);

}  // namespace easydel::text
