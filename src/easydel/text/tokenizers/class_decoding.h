// What some tokenizer classes of transformers do before and after their decoder. Source: transformers 5, the classes'
// tokenization_*.py.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "easydel/text/tokenizers/tokenizer.h"

namespace easydel::text {

struct ClassDecoding {
  // CLIP: the mark at the end of a word becomes a space, and the text is trimmed.
  bool ends_words = false;
  // CTC (Parakeet, LASR): a run of one id counts once, and padding is dropped.
  bool joins_runs = false;
  // Whisper: time stamps are left out, and with special tokens also the prompt before the transcript.
  bool transcribes = false;

  bool empty() const { return !ends_words && !joins_runs && !transcribes; }
  std::vector<TokenId> ids(std::span<const TokenId> ids, const Tokenizer& tokenizer, bool skip_special_tokens) const;
  std::string text(std::string text, bool time_stamps) const;
};

// By tokenizer_class, or by config.json's model_type if that is empty.
ClassDecoding class_decoding(std::string_view tokenizer_class, std::string_view model_type);

}  // namespace easydel::text
