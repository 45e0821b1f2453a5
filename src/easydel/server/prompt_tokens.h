// What an answer says about its prompt: its token ids and their log-probabilities, as vLLM writes them.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "easydel/esurge/results.h"
#include "easydel/server/request_fields.h"
#include "easydel/text/tokenizers/tokenizer.h"

namespace easydel::server {

class PromptTokens {
 public:
  // `tokenizer` may be null.
  PromptTokens(std::shared_ptr<const text::Tokenizer> tokenizer, std::vector<text::TokenId> ids,
               const GenerationFields& fields)
      : tokenizer_(std::move(tokenizer)),
        ids_(std::move(ids)),
        shows_ids_(fields.return_token_ids),
        logprobs_(fields.prompt_logprobs) {}

  bool shows_ids() const { return shows_ids_; }
  bool has_logprobs() const { return logprobs_.has_value(); }

  // Members of a JSON object, each with a comma before it; empty: nothing was asked for. `rows`: of each token after
  // the first; without them log-probabilities are left out.
  std::string members(std::span<const esurge::TokenLogprobs> rows) const;

 private:
  std::shared_ptr<const text::Tokenizer> tokenizer_;
  std::vector<text::TokenId> ids_;
  bool shows_ids_;
  std::optional<int64_t> logprobs_;  // number of most likely tokens
};

}  // namespace easydel::server
