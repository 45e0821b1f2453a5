// Cuts an encoded text to a number of tokens, as the package tokenizers does with `longest_first`.
#pragma once

#include <cstdint>
#include <optional>

#include "easydel/text/tokenizers/tokenizer.h"

namespace easydel::text {

int64_t added_tokens(const Encoding& encoding);  // that the tokenizer put around the text

// A text, or a pair, of at most `most` tokens: the longer text loses its end first, and what the tokenizer added stays.
// Nothing: that alone is as many.
std::optional<Encoding> cut_encoding(const Encoding& encoding, int64_t most);

}  // namespace easydel::text
