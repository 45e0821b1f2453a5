// Hand-written scanners for the split patterns of the large families, selected by the exact pattern.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace easydel::text {

// Appends the end of each piece; the pieces cover `text` without gaps.
using Scanner = void (*)(std::string_view text, std::vector<uint32_t>& ends);

inline constexpr std::string_view gpt2_pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

Scanner scanner_for(std::string_view pattern);  // null: none is known

}  // namespace easydel::text
