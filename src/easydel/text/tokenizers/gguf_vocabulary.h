// Writes a folder's tokenizer as the keys tokenizer.* of a GGUF file. read_gguf in formats.h reads them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "easydel/weights/gguf_write.h"

namespace easydel::text {

// `where`: as for Tokenizer::load. `rows`: rows of the embedding, which may exceed the number of tokens. `pre`: the
// name of the pre-tokenizer in GGUF if its pattern does not determine it; otherwise "". UserError: llama.cpp cannot
// express the tokenizer (it can express byte pairs with a known pattern and SentencePiece's byte pairs), or there are
// more tokens than rows. If `where` has no tokenizer, the file says so.
void add_vocabulary(weights::GgufWriter& out, const std::filesystem::path& where, int64_t rows,
                    const std::string& pre = "");

}  // namespace easydel::text
