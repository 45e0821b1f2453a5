// Reads one answer to a text as the engine's results come, with the tokens and log-probabilities of OpenAI's old form.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "easydel/esurge/results.h"
#include "easydel/server/completion_json.h"
#include "easydel/server/served_model.h"
#include "easydel/server/token_units.h"

namespace easydel::server {

struct TextReading {
  std::shared_ptr<const ServedModel> model = nullptr;
  std::vector<text::TokenId> prompt = {};
  size_t added = 0;  // ids in front of the prompt that its text does not spell (BOS); they are not echoed
  std::string prompt_text = {};
  bool echo = false;
  bool has_answer = true;                // false: max_tokens is 0, and the token that the engine makes is left out
  std::optional<int64_t> logprobs = {};  // number of most likely tokens; null: none at all
  bool keys_are_ids = false;             // tokens are shown as token_id:N
  bool skip_special_tokens = true;
};

class TextReader {
 public:
  TextReader(std::shared_ptr<const TextReading> reading, int64_t index);
  // What is new. The output's text, tokens and log-probabilities are those since the last call; `prompt_logprobs` comes
  // with the first one.
  TextPiece read(const esurge::CompletionOutput& output, const std::vector<esurge::TokenLogprobs>& prompt_logprobs);
  bool has_answer() const { return reading_->has_answer; }

 private:
  void echo(const std::vector<esurge::TokenLogprobs>& prompt_logprobs, TextPiece& piece);
  // `row` null: the first token of a prompt.
  void add_token(text::TokenId id, const esurge::TokenLogprobs* row, TextPiece& piece);
  std::string key(text::TokenId id, text::TextPlace& place) const;

  std::shared_ptr<const TextReading> reading_;
  int64_t index_;
  std::optional<TokenUnits> units_;
  std::vector<text::TokenId> ids_;           // of the answer, if log-probabilities are wanted
  std::vector<esurge::TokenLogprobs> rows_;  // of ids_
  text::TextPlace place_ = text::TextPlace::start;
  int64_t characters_ = 0;  // before the next token
  bool begun_ = false;
};

void append(TextPiece& whole, TextPiece piece);

}  // namespace easydel::server
