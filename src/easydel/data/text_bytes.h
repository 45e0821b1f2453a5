// How many bytes of text the labels of examples are, so that losses over different vocabularies can be compared.
#pragma once

#include <span>

#include "easydel/data/example.h"
#include "easydel/text/tokenizers/tokenizer.h"

namespace easydel::data {

// The column, one number for each example: bytes of the text of its labels in UTF-8. Special tokens have no text.
inline constexpr const char* text_bytes = "text_bytes";

// Sets the column of every example. `shifted`: as Example::unshifted_labels has it.
void count_text_bytes(std::span<Example> examples, const text::Tokenizer& tokenizer, bool shifted);

}  // namespace easydel::data
