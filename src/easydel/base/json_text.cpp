#include "easydel/base/json_text.h"

#include <cstdint>

namespace easydel {

size_t utf8_character_bytes(std::string_view text) {
  const auto byte = [&](size_t i) { return i < text.size() ? uint8_t(text[i]) : uint8_t{0}; };
  const uint8_t first = byte(0);
  const size_t count = first < 0x80                    ? 1
                       : first >= 0xc2 && first < 0xe0 ? 2
                       : (first & 0xf0) == 0xe0        ? 3
                       : first >= 0xf0 && first < 0xf5 ? 4
                                                       : 0;
  if (count == 0) return 0;
  for (size_t i = 1; i < count; ++i)
    if ((byte(i) & 0xc0) != 0x80) return 0;
  const uint8_t second = byte(1);
  const bool overlong = (first == 0xe0 && second < 0xa0) || (first == 0xf0 && second < 0x90);
  const bool surrogate = first == 0xed && second >= 0xa0;
  const bool too_large = first == 0xf4 && second >= 0x90;
  return overlong || surrogate || too_large ? 0 : count;
}

std::string json_text(std::string_view text) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string out = "\"";
  while (!text.empty()) {
    const char c = text[0];
    const size_t bytes = utf8_character_bytes(text);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\r') {
      out += "\\r";
    } else if (c == '\t') {
      out += "\\t";
    } else if (uint8_t(c) < 0x20 || c == 0x7f) {
      out += "\\u00";
      out += digits[uint8_t(c) >> 4];
      out += digits[uint8_t(c) & 15];
    } else if (bytes == 0) {
      out += "\xef\xbf\xbd";
    } else {
      out += text.substr(0, bytes);
    }
    text.remove_prefix(bytes == 0 ? 1 : bytes);
  }
  return out + "\"";
}

}  // namespace easydel
