// What a run notes of its rows besides what its method says of them.
#pragma once

#include <cstdint>
#include <vector>

#include "easydel/data/dataset.h"
#include "easydel/text/tokenizers/tokenizer.h"

namespace easydel::train {

struct RowNotes {
  int64_t vocabulary = 0;           // of the model
  bool labels_are_shifted = true;   // Example::labels[i] is the token after token i, else token i itself
  std::vector<int32_t> end_tokens;  // that end an answer of the model; empty: answers' ends are not looked at
};

// `prepare`, which also notes the special tokens that are learned and answers that do not end in a stop token. It
// refuses rows with a token that the model has no embedding for. The tokenizer must outlive it.
data::Prepare with_notes(data::Prepare prepare, RowNotes notes, const text::Tokenizer& tokenizer);

}  // namespace easydel::train
