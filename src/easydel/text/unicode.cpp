// Code point tables, UTF-8 repair, and the four normalization forms with what each character came from.
#include "easydel/text/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <memory>
#include <unordered_map>

#include "easydel/text/unicode_tables.h"

namespace easydel::text {
namespace {

constexpr size_t code_points = 0x110000;

std::unique_ptr<uint8_t[]> build_flags() {
  auto flags = std::make_unique<uint8_t[]>(code_points);
  for (size_t i = 0; i < tables::run_count; ++i) {
    size_t begin = tables::runs[i] >> 8;
    size_t end = i + 1 < tables::run_count ? tables::runs[i + 1] >> 8 : code_points;
    std::fill(flags.get() + begin, flags.get() + end, uint8_t(tables::runs[i]));
  }
  return flags;
}

bool within(const tables::Range* ranges, size_t count, char32_t c) {
  auto* end = ranges + count;
  auto* after = std::upper_bound(ranges, end, c, [](char32_t x, const tables::Range& r) { return x < r.first; });
  return after != ranges && c <= (after - 1)->last;
}

bool undecomposed(char32_t c) { return within(tables::undecomposed, tables::undecomposed_count, c); }

// Marks that are newer than the normalization tables of `tokenizers` have no combining class there.
int combining_class(char32_t c) {
  if (c < 0x300) return 0;
  int value = utf8proc_get_property(static_cast<utf8proc_int32_t>(c))->combining_class;
  return value && is_mark(c) ? value : 0;
}

constexpr char32_t hangul = 0xac00, hangul_l = 0x1100, hangul_v = 0x1161, hangul_t = 0x11a7;

// Pairs of characters that NFC composes, and the characters that NFC may change.
struct Composition {
  std::unordered_map<uint64_t, char32_t> pairs;
  std::vector<bool> touched;  // below 0x30000

  Composition() : touched(0x30000) {
    for (char32_t c = 0xc0; c < 0x30000; ++c) {
      if (c >= hangul && c < hangul + 11172) continue;
      utf8proc_int32_t parts[8];
      const auto* property = utf8proc_get_property(static_cast<utf8proc_int32_t>(c));
      if (property->combining_class) touched[c] = true;
      if (property->decomp_seqindex == UINT16_MAX || property->decomp_type || undecomposed(c)) continue;
      bool excluded = property->comp_exclusion;
      touched[c] = touched[c] || excluded;
      // One level: c = first + second, where first may decompose further.
      int boundary = 0;
      auto count = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c), parts, 8, UTF8PROC_DECOMPOSE, &boundary);
      if (count < 2) touched[c] = true;
      if (count < 2 || excluded) continue;
      // Composes all but the last to find the first half; pairs that do not recompose to the character are excluded.
      auto compose = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE);
      utf8proc_int32_t whole[8], half[8];
      std::copy(parts, parts + count, whole);
      std::copy(parts, parts + count - 1, half);
      bool itself =
          utf8proc_normalize_utf32(whole, count, compose) == 1 && whole[0] == static_cast<utf8proc_int32_t>(c);
      if (!itself || utf8proc_normalize_utf32(half, count - 1, compose) != 1) {
        touched[c] = true;
        continue;
      }
      auto second = static_cast<char32_t>(parts[count - 1]);
      pairs.emplace(uint64_t(half[0]) << 32 | second, c);
      if (second < touched.size()) touched[second] = true;
    }
    for (char32_t c = hangul_v; c < hangul_v + 21; ++c) touched[c] = true;
    for (char32_t c = hangul_t + 1; c < hangul_t + 28; ++c) touched[c] = true;
  }

  char32_t compose(char32_t a, char32_t b) const {  // 0: they do not compose
    if (a >= hangul_l && a < hangul_l + 19 && b >= hangul_v && b < hangul_v + 21)
      return hangul + ((a - hangul_l) * 21 + (b - hangul_v)) * 28;
    if (a >= hangul && a < hangul + 11172 && (a - hangul) % 28 == 0 && b > hangul_t && b < hangul_t + 28)
      return a + (b - hangul_t);
    auto it = pairs.find(uint64_t(a) << 32 | b);
    return it == pairs.end() ? 0 : it->second;
  }
};

const Composition& composition() {
  static const Composition table;
  return table;
}

struct Classed {
  Changed changed;
  int combining;
};

std::vector<Changed> decompose(std::string_view text, bool compatible) {
  std::vector<Changed> out;
  out.reserve(text.size());
  std::vector<Classed> waiting;  // marks that are not yet ordered
  auto flush = [&] {
    std::stable_sort(waiting.begin(), waiting.end(), [](auto& a, auto& b) { return a.combining < b.combining; });
    for (auto& item : waiting) out.push_back(item.changed);
    waiting.clear();
  };
  auto options = static_cast<utf8proc_option_t>(UTF8PROC_DECOMPOSE | (compatible ? UTF8PROC_COMPAT : 0));
  for (size_t at = 0; at < text.size();) {
    char32_t c = next_character(text, at);
    utf8proc_int32_t parts[32] = {static_cast<utf8proc_int32_t>(c)};
    utf8proc_ssize_t count = 1;
    if (c >= 0xa0 && !undecomposed(c)) {
      int boundary = 0;
      count = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c), parts, 32, options, &boundary);
      if (count < 1 || count > 32) count = 1, parts[0] = static_cast<utf8proc_int32_t>(c);
    }
    for (utf8proc_ssize_t i = 0; i < count; ++i) {
      auto part = static_cast<char32_t>(parts[i]);
      int combining = combining_class(part);
      if (!combining) flush();
      Changed changed{part, i ? 1 : 0};
      if (combining)
        waiting.push_back({changed, combining});
      else
        out.push_back(changed);
    }
  }
  flush();
  return out;
}

std::vector<Changed> compose(const std::vector<Changed>& parts) {
  const Composition& table = composition();
  std::vector<Changed> out;
  out.reserve(parts.size());
  size_t starter = SIZE_MAX;
  int last = -1;  // combining class of the last mark kept after the starter; -1: none
  for (const Changed& part : parts) {
    int combining = combining_class(part.character);
    if (starter != SIZE_MAX && (last < 0 || last < combining)) {
      if (char32_t whole = table.compose(out[starter].character, part.character)) {
        out[starter] = {whole, out[starter].change + part.change - 1};
        continue;
      }
    }
    out.push_back(part);
    if (combining == 0) {
      starter = out.size() - 1;
      last = -1;
    } else {
      last = combining;
    }
  }
  return out;
}

}  // namespace

const uint8_t* code_point_flags() {
  static const std::unique_ptr<uint8_t[]> flags = build_flags();
  return flags.get();
}

void append_utf8(std::string& out, char32_t c) {
  auto put = [&](char32_t byte) { out += char(byte); };
  if (c < 0x80) {
    put(c);
  } else if (c < 0x800) {
    put(0xc0 | c >> 6), put(0x80 | (c & 0x3f));
  } else if (c < 0x10000) {
    put(0xe0 | c >> 12), put(0x80 | (c >> 6 & 0x3f)), put(0x80 | (c & 0x3f));
  } else {
    put(0xf0 | c >> 18), put(0x80 | (c >> 12 & 0x3f)), put(0x80 | (c >> 6 & 0x3f)), put(0x80 | (c & 0x3f));
  }
}

std::string to_utf8(std::u32string_view text) {
  std::string out;
  for (char32_t c : text) append_utf8(out, c);
  return out;
}

std::u32string to_utf32(std::string_view text) {
  std::u32string out;
  for (size_t at = 0; at < text.size();) out += next_character(text, at);
  return out;
}

int64_t count_characters(std::string_view text) {
  int64_t count = 0;
  for (char c : text) count += (c & 0xc0) != 0x80;
  return count;
}

namespace {

// Length of the character at `at`; 0: invalid, and its maximal invalid part has `bad` bytes.
size_t valid_length(std::string_view text, size_t at, size_t& bad, bool& cut) {
  auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  unsigned char lead = byte(at);
  cut = false;
  bad = 1;
  if (lead < 0x80) return 1;
  if (lead < 0xc2 || lead > 0xf4) return 0;
  size_t length = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  for (size_t i = 1; i < length; ++i) {
    if (at + i >= text.size()) {
      cut = true;
      bad = i;
      return 0;
    }
    unsigned char low = 0x80, high = 0xbf;
    if (i == 1) {
      if (lead == 0xe0) low = 0xa0;
      if (lead == 0xed) high = 0x9f;
      if (lead == 0xf0) low = 0x90;
      if (lead == 0xf4) high = 0x8f;
    }
    if (byte(at + i) < low || byte(at + i) > high) {
      bad = i;
      return 0;
    }
  }
  return length;
}

}  // namespace

size_t valid_prefix(std::string_view text) {
  size_t at = 0, bad = 0;
  bool cut = false;
  while (at < text.size()) {
    size_t length = static_cast<unsigned char>(text[at]) < 0x80 ? 1 : valid_length(text, at, bad, cut);
    if (!length) break;
    at += length;
  }
  return at;
}

std::string replace_invalid(std::string_view text) {
  std::string out;
  size_t at = 0, bad = 0;
  bool cut = false;
  while (at < text.size()) {
    size_t good = valid_prefix(text.substr(at));
    out += text.substr(at, good);
    at += good;
    if (at == text.size()) break;
    valid_length(text, at, bad, cut);
    out += "\xEF\xBF\xBD";
    at += bad;
  }
  return out;
}

size_t incomplete_tail(std::string_view text) {
  size_t from = text.size() > 3 ? text.size() - 3 : 0;
  for (size_t at = from; at < text.size(); ++at) {
    size_t bad = 0;
    bool cut = false;
    valid_length(text, at, bad, cut);
    if (cut && at + bad == text.size()) return bad;
  }
  return 0;
}

bool is_kept_by_bert(char32_t c) { return within(tables::kept_by_bert, tables::kept_by_bert_count, c); }

char32_t lower_of(char32_t c) {
  if (c < 0x80) return c >= 'A' && c <= 'Z' ? c + 32 : c;
  auto* end = tables::lower + tables::lower_count;
  auto* row = std::upper_bound(tables::lower, end, c, [](char32_t x, const tables::Lower& r) { return x < r.first; });
  while (row != tables::lower) {
    --row;
    if (c <= row->last && (c - row->first) % row->step == 0) return c + row->difference;
    if (row->last + 64 < c) break;
  }
  return c;
}

std::vector<Changed> normalize(std::string_view text, Form form) {
  auto parts = decompose(text, form == Form::nfkc || form == Form::nfkd);
  return form == Form::nfc || form == Form::nfkc ? compose(parts) : parts;
}

bool surely_nfc(std::string_view text) {
  const auto& touched = composition().touched;
  for (size_t at = 0; at < text.size();) {
    if (static_cast<unsigned char>(text[at]) < 0xcc) {  // below U+0300
      at += static_cast<unsigned char>(text[at]) < 0x80 ? 1 : 2;
      continue;
    }
    char32_t c = next_character(text, at);
    if (c < touched.size() ? touched[c] : c > 0x2ffff) return false;
  }
  return true;
}

uint8_t script_of(char32_t c) {
  auto* end = tables::scripts + tables::script_count;
  auto* after = std::upper_bound(tables::scripts, end, c, [](char32_t x, uint32_t row) { return x < row >> 8; });
  return after == tables::scripts ? 0 : uint8_t(*(after - 1));
}

}  // namespace easydel::text
