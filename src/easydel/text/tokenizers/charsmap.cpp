// Walks the compiled trie and checks every index, because the bytes are untrusted.
#include "easydel/text/tokenizers/charsmap.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "easydel/base/error.h"

namespace easydel::text {

static constexpr std::string_view base64_digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

Charsmap::Charsmap(std::string_view blob) {
  uint32_t size = 0;
  if (blob.size() > sizeof size) std::memcpy(&size, blob.data(), sizeof size);
  if (size == 0 || size % 4 || size >= blob.size() - sizeof size)
    refuse("tokenizer.json", str("the compiled character map of ", blob.size(), " bytes is broken"),
           "fetch the tokenizer again");
  units_.resize(size / 4);
  std::memcpy(units_.data(), blob.data() + sizeof size, size);
  strings_ = blob.substr(sizeof size + size);
}

std::optional<Charsmap::Match> Charsmap::find(std::string_view text, bool longest) const {
  if (units_.empty()) return std::nullopt;
  auto offset = [](uint32_t unit) -> size_t { return size_t(unit >> 10) << ((unit & 1u << 9) >> 6); };
  std::optional<Match> best;
  size_t at = offset(units_[0]);
  for (size_t i = 0; i < text.size(); ++i) {
    auto byte = uint8_t(text[i]);
    if (byte == 0) break;
    at ^= byte;
    if (at >= units_.size()) break;
    uint32_t unit = units_[at];
    if ((unit & (1u << 31 | 0xff)) != byte) break;
    at ^= offset(unit);
    if (!(unit >> 8 & 1)) continue;
    if (at >= units_.size()) break;
    size_t begin = units_[at] & ~(1u << 31);
    if (begin > strings_.size()) break;
    best = Match{i + 1, std::string_view(strings_).substr(begin, strings_.find('\0', begin) - begin)};
    if (!longest) break;
  }
  return best;
}

std::string decode_base64(std::string_view text) {
  static constexpr auto values = [] {
    std::array<int8_t, 256> table{};
    table.fill(-1);
    for (size_t i = 0; i < base64_digits.size(); ++i) table[uint8_t(base64_digits[i])] = int8_t(i);
    return table;
  }();
  while (text.ends_with('=')) text.remove_suffix(1);
  std::string out;
  out.reserve(text.size() * 3 / 4);
  uint32_t bits = 0;
  int count = 0;
  for (char c : text) {
    int value = values[uint8_t(c)];
    if (value < 0)
      refuse("tokenizer.json", str("'", text.substr(0, 40), "' is not base64"), "fetch the tokenizer again");
    bits = bits << 6 | uint32_t(value);
    if ((count += 6) < 8) continue;
    count -= 8;
    out += char(bits >> count);
  }
  return out;
}

std::string encode_base64(std::string_view bytes) {
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t at = 0; at < bytes.size(); at += 3) {
    uint32_t bits = 0;
    size_t count = std::min<size_t>(3, bytes.size() - at);
    for (size_t i = 0; i < 3; ++i) bits = bits << 8 | (i < count ? uint8_t(bytes[at + i]) : 0);
    for (size_t i = 0; i < 4; ++i) out += i <= count ? base64_digits[bits >> (18 - 6 * i) & 63] : '=';
  }
  return out;
}

}  // namespace easydel::text
