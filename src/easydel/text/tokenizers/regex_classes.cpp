// Converts general categories to ranges, from the table of code points.
#include "easydel/text/tokenizers/regex_classes.h"

#include <array>
#include <cstdio>
#include <optional>
#include <utility>

#include "easydel/text/unicode_tables.h"

namespace easydel::text {
namespace {

// In the order of Category. Unassigned code points, which include surrogates, are left to Oniguruma.
constexpr std::array<std::string_view, 29> names = {"",   "lu", "ll", "lt", "lm", "lo", "mn", "mc", "me", "nd",
                                                    "nl", "no", "pc", "pd", "ps", "pe", "pi", "pf", "po", "sm",
                                                    "sc", "sk", "so", "zs", "zl", "zp", "cc", "cf", "co"};

// Bits by Category, plus one for word characters. nullopt: not the name of a category.
constexpr uint32_t word = uint32_t{1} << 31;
std::optional<uint32_t> categories_of(std::string_view name) {
  uint32_t out = 0;
  for (size_t i = 0; i < names.size(); ++i)
    if (name.size() <= 2 && !name.empty() && names[i].starts_with(name)) out |= uint32_t{1} << i;
  return out && name != "c" ? std::optional(out) : std::nullopt;
}

std::string ranges(uint32_t categories, bool negated) {
  std::string out = negated ? "[^" : "[";
  const auto add = [&out](uint32_t first, uint32_t behind) {
    char text[32];
    std::snprintf(text, sizeof text, first + 1 == behind ? "\\x{%x}" : "\\x{%x}-\\x{%x}", first, behind - 1);
    out += text;
  };
  constexpr uint32_t nowhere = 0x110000;
  uint32_t first = nowhere;
  for (size_t i = 0; i < tables::run_count; ++i) {
    const uint32_t run = tables::runs[i];
    const bool inside = categories == word ? run & 32 : categories >> (run & 31) & 1;
    if (inside && first == nowhere) first = run >> 8;
    if (!inside && first != nowhere) add(std::exchange(first, nowhere), run >> 8);
  }
  if (first != nowhere) add(first, nowhere);
  if (categories == word) out += "\\x{b2}\\x{b3}\\x{b9}\\x{bc}-\\x{be}";  // the engine's words, not Rust's
  return out + "]";
}

// The name in \p{...}, in lower case and without ignorable characters.
std::string plain(std::string_view name) {
  std::string out;
  for (const char c : name)
    if (c != ' ' && c != '_' && c != '-') out += c >= 'A' && c <= 'Z' ? char(c | 32) : c;
  return out;
}

}  // namespace

std::string spelled_out(std::string_view pattern) {
  std::string out;
  for (size_t at = 0; at < pattern.size();) {
    if (pattern[at] != '\\' || at + 1 == pattern.size()) {
      out += pattern[at++];
      continue;
    }
    const char kind = pattern[at + 1];
    size_t end = at + 2;
    std::optional<uint32_t> categories;
    bool negated = kind == 'P' || kind == 'W' || kind == 'D';
    if (kind == 'w' || kind == 'W') categories = word;
    if (kind == 'd' || kind == 'D') categories = categories_of("nd");
    const size_t close = (kind == 'p' || kind == 'P') && pattern.substr(end).starts_with('{') ? pattern.find('}', end)
                                                                                              : std::string_view::npos;
    if (close != std::string_view::npos) {
      std::string_view name = pattern.substr(end + 1, close - end - 1);
      const bool not_it = name.starts_with('^');
      if (not_it) name.remove_prefix(1);
      negated = negated != not_it;
      categories = categories_of(plain(name));
      if (categories) end = close + 1;
    }
    if (categories && !out.ends_with('-'))  // [a-\d] is left as it is
      out += ranges(*categories, negated);
    else
      out += pattern.substr(at, end - at);
    at = end;
  }
  return out;
}

}  // namespace easydel::text
