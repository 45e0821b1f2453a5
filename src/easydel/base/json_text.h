// Text as a JSON string.
#pragma once

#include <string>
#include <string_view>

namespace easydel {

// With quotes and on one line. Control characters are escaped; other characters stay as they are. Each byte that is not
// part of valid UTF-8 becomes U+FFFD.
std::string json_text(std::string_view text);
// The number of bytes of the UTF-8 character that `text` begins with; 0: it does not begin with one.
size_t utf8_character_bytes(std::string_view text);

}  // namespace easydel
