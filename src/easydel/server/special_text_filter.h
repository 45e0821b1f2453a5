// Takes the special tokens out of a text that was decoded with them, because a parser needed to see them.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "easydel/text/tokenizers/tokenizer.h"

namespace easydel::server {

// The texts of a tokenizer's special tokens.
std::vector<std::string> special_texts(const text::Tokenizer& tokenizer);

class SpecialTextFilter {
 public:
  explicit SpecialTextFilter(std::shared_ptr<const std::vector<std::string>> texts) : texts_(std::move(texts)) {}
  // The text that is certain by now: what may become a special token's text is held back.
  std::string feed(std::string_view text);
  std::string finish() { return std::exchange(held_, {}); }

 private:
  std::shared_ptr<const std::vector<std::string>> texts_;
  std::string held_;
};

}  // namespace easydel::server
