// How texts become requests of a scorer: the rules of lm-evaluation-harness 0.4.13 (lm_eval/api/model.py,
// lm_eval/models/huggingface.py, lm_eval/utils.py), so that its figures come out.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "easydel/generation/scorer.h"
#include "easydel/text/tokenizers/tokenizer.h"

namespace easydel::generation {

class ScoreText {
 public:
  // `prefix`: the token that an empty context is; not given: BOS, else EOS. UserError if there is neither.
  explicit ScoreText(std::shared_ptr<const text::Tokenizer> tokenizer,
                     std::optional<text::TokenId> prefix = std::nullopt);

  // With the special tokens that the tokenizer adds, but without them where the text spells the prefix token already.
  std::vector<text::TokenId> encode(std::string_view text) const;
  // White space at the end of the context moves to the continuation, and both are tokenized as one text.
  // The continuation may end up without tokens.
  ScoreRequest pair(std::string context, std::string continuation) const;
  // The requests whose log-probabilities add up to that of the text: windows of `max_length` tokens with disjoint
  // continuations; the first begins with the prefix token.
  std::vector<ScoreRequest> rolling(std::string_view text, int64_t max_length) const;
  std::vector<ScoreRequest> rolling(const std::vector<text::TokenId>& ids, int64_t max_length) const;

  // Windows of `max_length` tokens that begin every `stride` tokens, as transformers' guide to perplexity has them:
  // each predicts the tokens after the last window's end, with the tokens before them as context. The first token has
  // no context and is not predicted.
  std::vector<ScoreRequest> strided(std::string_view text, int64_t max_length, int64_t stride) const;

  text::TokenId prefix() const { return prefix_; }
  const text::Tokenizer& tokenizer() const { return *tokenizer_; }

 private:
  std::shared_ptr<const text::Tokenizer> tokenizer_;
  text::TokenId prefix_;
  std::string prefix_text_;
};

// Bytes of the white space, as Python's str.strip() knows it, at the beginning of valid UTF-8; bytes before that at its
// end.
size_t leading_space(std::string_view text);
size_t stripped_length(std::string_view text);

// The text before the first of these strings, one string after the other; empty strings are left out. So the harness
// cuts answers.
std::string cut_at(std::string text, const std::vector<std::string>& stops);

}  // namespace easydel::generation
