// The one-to-one map between bytes and printable characters that byte-level vocabularies use.
// Source: GPT-2's encoder.py (bytes_to_unicode).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "easydel/text/tokenizers/normalized_text.h"

namespace easydel::text {

char32_t character_of_byte(uint8_t byte);
int byte_of_character(char32_t c);  // -1: none

void map_bytes(NormalizedText& text);  // replaces every byte by its character
std::string map_bytes(std::string_view bytes);
std::optional<std::string> unmap_bytes(std::string_view mapped);  // nullopt: a character that maps to no byte

}  // namespace easydel::text
