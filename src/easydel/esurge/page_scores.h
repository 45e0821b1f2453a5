// Log-probabilities of the tokens of one page of the prefix index, kept so that a later prompt with the same tokens
// need not be computed for them. Plain values without torch.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "easydel/esurge/token_logprobs.h"

namespace easydel::esurge {

class PageScores {
 public:
  // How many of the most likely tokens are kept for a token of the page; -1: it has no scores.
  int64_t count(int64_t index) const;
  // As row_logprobs() gives it for `count` tokens, at most those of count(index). `token`: that of the page.
  TokenLogprobs get(int64_t index, TokenId token, int64_t count) const;
  // These, with rows of the tokens from `first` on, which were made with `count`. Of a token that has some the row with
  // more is kept. nullopt: nothing is new.
  std::optional<PageScores> with(int64_t first, std::span<const TokenLogprobs> rows, int64_t count) const;
  int64_t bytes() const { return int64_t(tokens_.size() * sizeof(Token) + entries_.size() * sizeof(Entry)); }
  // Of `tokens` tokens with `count` of the most likely ones for each.
  static int64_t most_bytes(int64_t tokens, int64_t count) {
    return tokens * (int64_t(sizeof(Token)) + count * int64_t(sizeof(Entry)));
  }
  bool empty() const { return tokens_.empty(); }

 private:
  struct Entry {
    TokenId id = 0;
    float logprob = 0;
  };
  struct Token {
    uint32_t begin = 0;               // of its entries, most likely first
    int16_t count = -1, entries = 0;  // entries are fewer than `count` in a smaller vocabulary
    float logprob = 0;                // of the token itself
  };

  std::vector<Token> tokens_;
  std::vector<Entry> entries_;
};

}  // namespace easydel::esurge
