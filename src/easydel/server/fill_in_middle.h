// Prompts that ask a model for the text between two others, where its tokenizer has tokens for that.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "easydel/text/tokenizers/tokenizer.h"

namespace easydel::server {

struct MiddleTokens {
  text::TokenId prefix = -1, suffix = -1;
  std::optional<text::TokenId> middle = {};  // stands before the answer; null: the prefix does
  bool suffix_first = false;                 // the suffix stands before the prefix
  std::vector<text::TokenId> ends = {};      // that end an answer, in addition to the model's end tokens
};

// nullopt: the tokenizer has none.
std::optional<MiddleTokens> middle_tokens(const text::Tokenizer& tokenizer);

// The prompt for the text between `prefix` and `suffix`, with the tokenizer's BOS if it begins texts with it.
std::vector<text::TokenId> middle_prompt(const text::Tokenizer& tokenizer, const MiddleTokens& tokens,
                                         const std::vector<text::TokenId>& prefix, const std::string& suffix);

}  // namespace easydel::server
