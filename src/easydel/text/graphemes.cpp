// Extended grapheme clusters, by the rules of UAX 29 (GB3 to GB13, GB9c with them) and `tokenizers`' version of
// Unicode.
#include <algorithm>

#include "easydel/text/unicode.h"
#include "easydel/text/unicode_tables.h"

namespace easydel::text {
namespace {

// Numbered as in the table; the rest follows from the code point.
enum class Kind : uint8_t {
  other,
  control,
  extend,
  spacing,
  prepend,
  pictograph,
  consonant,
  linker,           // an extend that joins consonants
  conjunct_extend,  // an extend allowed between them
  zwj,
  regional,
  hangul_l,
  hangul_v,
  hangul_t,
  hangul_lv,
  hangul_lvt
};

bool between(char32_t c, char32_t first, char32_t last) { return c >= first && c <= last; }

Kind kind_of(char32_t c) {
  if (c >= 0x20 && c < 0x7f) return Kind::other;
  if (c == 0x200d) return Kind::zwj;
  if (between(c, 0x1f1e6, 0x1f1ff)) return Kind::regional;
  if (between(c, 0x1100, 0x115f) || between(c, 0xa960, 0xa97c)) return Kind::hangul_l;
  if (between(c, 0x1160, 0x11a7) || between(c, 0xd7b0, 0xd7c6)) return Kind::hangul_v;
  if (between(c, 0x11a8, 0x11ff) || between(c, 0xd7cb, 0xd7fb)) return Kind::hangul_t;
  if (between(c, 0xac00, 0xd7a3)) return (c - 0xac00) % 28 == 0 ? Kind::hangul_lv : Kind::hangul_lvt;
  const uint32_t* const end = tables::graphemes + tables::grapheme_count;
  const uint32_t* const after =
      std::upper_bound(tables::graphemes, end, c, [](char32_t x, uint32_t row) { return x < row >> 8; });
  return static_cast<Kind>(*(after - 1) & 0xff);
}

// The state of a cluster while it is read.
class Cluster {
 public:
  explicit Cluster(char32_t first) : last_(first) { add(kind_of(first)); }

  // Returns whether `c` belongs to the cluster, and adds it if so.
  bool takes(char32_t c) {
    const Kind next = kind_of(c);
    const bool taken = (last_ == '\r' && c == '\n') || joins(next);
    if (taken) add(next), last_ = c;
    return taken;
  }

 private:
  static bool extends(Kind kind) {
    return kind == Kind::extend || kind == Kind::linker || kind == Kind::conjunct_extend;
  }
  bool joins(Kind next) const {
    if (kind_ == Kind::control || next == Kind::control) return false;
    switch (next) {
      case Kind::extend:
      case Kind::linker:
      case Kind::conjunct_extend:
      case Kind::zwj:
      case Kind::spacing:
        return true;
      case Kind::hangul_l:
      case Kind::hangul_lv:
      case Kind::hangul_lvt:
        if (kind_ == Kind::hangul_l) return true;
        break;
      case Kind::hangul_v:
        if (kind_ == Kind::hangul_l || kind_ == Kind::hangul_lv || kind_ == Kind::hangul_v) return true;
        break;
      case Kind::hangul_t:
        if (kind_ == Kind::hangul_lv || kind_ == Kind::hangul_lvt || kind_ == Kind::hangul_v || kind_ == Kind::hangul_t)
          return true;
        break;
      case Kind::consonant:
        if (linked_) return true;
        break;
      case Kind::pictograph:
        if (pictograph_ && kind_ == Kind::zwj) return true;
        break;
      case Kind::regional:
        if (odd_regionals_) return true;
        break;
      default:
        break;
    }
    return kind_ == Kind::prepend;
  }
  void add(Kind next) {
    const bool between_consonants = next == Kind::linker || next == Kind::conjunct_extend || next == Kind::zwj;
    linked_ = (linked_ && between_consonants) || (consonant_ && next == Kind::linker);
    consonant_ = next == Kind::consonant || (consonant_ && between_consonants);
    pictograph_ =
        next == Kind::pictograph || (pictograph_ && kind_ != Kind::zwj && (extends(next) || next == Kind::zwj));
    odd_regionals_ = next == Kind::regional && !odd_regionals_;
    kind_ = next;
  }

  char32_t last_;
  Kind kind_ = Kind::other;
  bool consonant_ = false, linked_ = false;  // a consonant, then a linker, with only allowed extends between
  bool pictograph_ = false;                  // a pictograph, extends, perhaps one joiner
  bool odd_regionals_ = false;
};

}  // namespace

size_t grapheme_end(std::string_view text, size_t at) {
  if (at >= text.size()) return at;
  const auto ascii = [&](size_t i) { return i >= text.size() || static_cast<unsigned char>(text[i]) < 0x80; };
  if (ascii(at) && ascii(at + 1)) return at + (text.substr(at).starts_with("\r\n") ? 2 : 1);
  Cluster cluster(next_character(text, at));
  while (at < text.size()) {
    size_t next = at;
    if (!cluster.takes(next_character(text, next))) break;
    at = next;
  }
  return at;
}

}  // namespace easydel::text
