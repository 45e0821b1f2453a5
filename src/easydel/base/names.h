// Names as people type them: "did you mean", and names with hyphens.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace easydel {

// The word of `known` closest to `word`, if `word` may be a typo of it (edit distance with transpositions of at most a
// third of the longer word's length, or 1); empty: none.
std::string nearest(std::string_view word, std::span<const std::string> known);
// "did you mean 'page_size'?" or "known: a, b, c".
std::string did_you_mean(std::string_view word, std::span<const std::string> known);
std::string canonical(std::string_view name);               // lower case, '-' to '_'
std::string counted(int64_t count, std::string_view noun);  // "1 row", "2 rows"
std::string join(std::span<const std::string> words, std::string_view separator);

}  // namespace easydel
