// Cuts an encoded text to a number of tokens, as the package tokenizers does with `longest_first`.
#pragma once

#include <cstdint>
#include <optional>

#include "easydel/text/tokenizers/tokenizer.h"

namespace easydel::text {

int64_t added_tokens(const Encoding& encoding);  // that the tokenizer put around the text

// The encoding of a text, or of a pair of texts, shortened to at most `most` tokens: the longer text loses its end
// first, and the tokens that the tokenizer added stay. nullopt if no token of a text would be left beside those.
std::optional<Encoding> cut_encoding(const Encoding& encoding, int64_t most);

}  // namespace easydel::text
