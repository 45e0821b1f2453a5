// Log-probabilities of the tokens of a text. Plain values without torch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "easydel/text/tokenizers/tokenizer.h"

namespace easydel::esurge {

using text::TokenId;

// Log-probabilities of one row: the k most likely tokens and the token that came, most likely first; equal ones in the
// order of their ids.
struct TokenLogprobs {
  std::vector<TokenId> token_ids;
  std::vector<float> logprobs;  // of token_ids
  size_t chosen = 0;            // index of the token that came

  float chosen_logprob() const { return logprobs[chosen]; }
  bool operator==(const TokenLogprobs&) const = default;
};

// The log-probabilities of a prompt's tokens that a request wants, as far as they are known. Steps append them in
// order, and so does the prefix index where it has them of the same tokens.
struct PromptScores {
  int64_t count = 0;                     // most likely tokens of each row
  std::vector<TokenLogprobs> rows = {};  // rows[i] is of token i + 1 after those before it
};

}  // namespace easydel::esurge
