// The byte map and its inverse.
#include "easydel/text/tokenizers/byte_level.h"

#include <array>

namespace easydel::text {
namespace {

struct Map {
  std::array<char32_t, 256> character{};
  std::array<int16_t, 0x144> byte{};
  constexpr Map() {
    byte.fill(-1);
    char32_t next = 256;
    for (int b = 0; b < 256; ++b) {
      bool printable = (b >= '!' && b <= '~') || (b >= 0xa1 && b <= 0xac) || b >= 0xae;
      character[b] = printable ? static_cast<char32_t>(b) : next++;
      byte[character[b]] = int16_t(b);
    }
  }
};
constexpr Map map;

}  // namespace

char32_t character_of_byte(uint8_t byte) { return map.character[byte]; }

int byte_of_character(char32_t c) { return c < map.byte.size() ? map.byte[c] : -1; }

void map_bytes(NormalizedText& text) {
  std::vector<Changed> changed;
  changed.reserve(text.bytes().size());
  for (char c : text.bytes()) changed.push_back({map.character[uint8_t(c)], (c & 0xc0) == 0x80 ? 1 : 0});
  text.transform(changed);
}

std::string map_bytes(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size() + bytes.size() / 4);
  for (char c : bytes) append_utf8(out, map.character[uint8_t(c)]);
  return out;
}

std::optional<std::string> unmap_bytes(std::string_view mapped) {
  std::string out;
  out.reserve(mapped.size());
  for (size_t at = 0; at < mapped.size();) {
    int byte = byte_of_character(next_character(mapped, at));
    if (byte < 0) return std::nullopt;
    out += char(byte);
  }
  return out;
}

}  // namespace easydel::text
