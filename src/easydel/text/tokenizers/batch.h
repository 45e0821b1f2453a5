// Encodes many texts on several threads.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "easydel/text/tokenizers/tokenizer.h"

namespace easydel::text {

// The ids of each text, in order. `threads` 0: as many as the machine has. Rethrows what an encode throws.
std::vector<std::vector<TokenId>> encode_batch(const Tokenizer& tokenizer, std::span<const std::string_view> texts,
                                               const EncodeOptions& options = {}, unsigned threads = 0);

}  // namespace easydel::text
