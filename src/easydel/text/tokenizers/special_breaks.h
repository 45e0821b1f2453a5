// Encodes a text of which parts must stay text even where they spell special tokens.
#pragma once

#include <span>
#include <string_view>

#include "easydel/text/tokenizers/tokenizer.h"

namespace easydel::text {

// `breaks`: places in the text, in bytes; no special token begins before one and ends after it. `options`: without
// file_limits. The text is valid UTF-8.
Encoding encode_with_breaks(const Tokenizer& tokenizer, std::string_view text, std::span<const size_t> breaks,
                            const EncodeOptions& options = {});

}  // namespace easydel::text
