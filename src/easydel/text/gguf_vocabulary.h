// A folder's tokenizer as the keys tokenizer.* of a GGUF file. The way back is read_gguf in formats.h.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "easydel/weights/gguf_write.h"

namespace easydel::text {

// `where` as Tokenizer::load takes it; `rows`: of the embedding, which may be more than there are tokens. `pre`: the
// name of the pre-tokenizer in GGUF, where it cannot be told by its pattern; "" otherwise. UserError where the
// tokenizer has no form that llama.cpp knows (byte pairs with a known pattern, SentencePiece's byte pairs), or more
// tokens than rows. Without a tokenizer the file says that it has none.
void add_vocabulary(weights::GgufWriter& out, const std::filesystem::path& where, int64_t rows,
                    const std::string& pre = "");

}  // namespace easydel::text
