// How byte-pair vocabularies in GGUF files split a text: the names of tokenizer.ggml.pre and their patterns.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace easydel::text {

struct GgufPattern {
  // What a piece is: its bytes mapped to characters; text with U+2581 for blanks; a word between blanks, as text.
  enum class Pieces : uint8_t { mapped_bytes, escaped_blanks, words };

  std::vector<std::string> patterns;  // applied one after the other
  bool ignore_merges = false;         // a piece that is a token is not split further
  bool adds_bos = false;              // default, if the file does not say
  Pieces pieces = Pieces::mapped_bytes;
};

// Every name that gguf_pattern() knows, without "".
std::vector<std::string> gguf_pattern_names();
// UserError: `pre` is an unknown name. "" and "default" are llama.cpp's default.
GgufPattern gguf_pattern(std::string_view pre, const std::string& name);
// The name of patterns on mapped bytes; empty: they have no name.
std::string gguf_pattern_name(const std::vector<std::string>& patterns, bool ignore_merges);

}  // namespace easydel::text
