// How byte-pair vocabularies in GGUF files cut a text: the names of tokenizer.ggml.pre and their patterns.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace easydel::text {

struct GgufPattern {
  std::vector<std::string> patterns;  // one after the other
  bool ignore_merges = false;         // a piece that is a token is not cut
  bool adds_bos = false;              // where the file does not say
  bool escapes_blanks = false;        // pieces are text with U+2581 for blanks, not mapped bytes
};

// UserError where `pre` is a name that is not known; "" and "default" are llama.cpp's default.
GgufPattern gguf_pattern(std::string_view pre, const std::string& name);
// The name of such a pattern, of mapped bytes; empty: it has none.
std::string gguf_pattern_name(const std::vector<std::string>& patterns, bool ignore_merges);

}  // namespace easydel::text
