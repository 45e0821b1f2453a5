// Which tokens a piece of an answer's text came from. The engine holds text back (parts of characters, what may become
// a stop string), so text and tokens of one result need not belong together.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "easydel/server/completion_json.h"
#include "easydel/text/tokenizers/tokenizer.h"

namespace easydel::server {

// Text, and the tokens that it came from: one, or those of a character that several tokens spell. How an answer is cut
// into units does not depend on how its results were cut.
struct TokenUnit {
  std::string text = {};
  std::vector<size_t> tokens = {};  // indices among the answer's tokens
};

class TokenUnits {
 public:
  // `before`: the tokens before the answer. `skip_special_tokens`: as the engine decodes.
  TokenUnits(std::shared_ptr<const text::Tokenizer> tokenizer, bool skip_special_tokens,
             std::span<const text::TokenId> before);
  // New tokens and new text of the answer; the units that are complete by now. `finished`: all of the rest.
  std::vector<TokenUnit> take(std::span<const text::TokenId> ids, std::string_view text, bool finished);

 private:
  struct Waiting {
    size_t end = 0;  // of its text, in bytes of the answer
    std::vector<size_t> tokens = {};
  };
  text::DecodeStream decoder_;
  std::deque<Waiting> waiting_;
  std::vector<size_t> textless_;  // tokens whose text comes with a later one
  std::string text_;              // that no unit has taken
  size_t decoded_ = 0, taken_ = 0, tokens_ = 0;
};

// A token and its log-probability. A token without text of its own has its name in the vocabulary.
LogprobEntry logprob_entry(const text::Tokenizer& tokenizer, text::TokenId id, float logprob);

}  // namespace easydel::server
