// Reads one answer to a conversation as the engine's results come: content, reasoning and calls with their tokens. The
// sum of the pieces does not depend on how the answer was cut into results.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "easydel/esurge/results.h"
#include "easydel/server/completion_json.h"
#include "easydel/server/served_model.h"
#include "easydel/server/special_text_filter.h"
#include "easydel/server/token_units.h"

namespace easydel::server {

struct ChatReading {
  std::shared_ptr<const ServedModel> model = nullptr;
  std::vector<text::TokenId> prompt = {};
  text::OutputFormat format = {};  // empty: all text is content
  text::OutputOptions options = {};
  std::optional<int64_t> top_logprobs = {};  // null: log-probabilities are not wanted
  bool skip_special_tokens = true;
  std::string prefix = {};  // stands before the content

  // Parsers see special tokens, which are taken out of what they return.
  bool engine_skips_special_tokens() const;
  // Whether the engine has to return token ids.
  bool needs_tokens() const;
};

class ChatReader {
 public:
  ChatReader(std::shared_ptr<const ChatReading> reading, int64_t index);
  // What is new. The output's text, tokens and log-probabilities are those since the last call.
  ChatPiece read(const esurge::CompletionOutput& output);
  int64_t reasoning_tokens() const { return reasoning_tokens_; }

 private:
  struct Seen {  // text that was given to the parser, and did not come out again so far
    std::string text;
    std::vector<size_t> tokens;
  };
  void add(text::Delta delta, ChatPiece& piece);
  void attribute(const std::string& text, bool content, ChatPiece& piece);
  void take_tokens(const std::vector<size_t>& tokens, bool content, ChatPiece& piece);

  std::shared_ptr<const ChatReading> reading_;
  int64_t index_;
  text::OutputParser parser_;
  std::optional<TokenUnits> units_;
  std::optional<SpecialTextFilter> content_filter_, reasoning_filter_;
  std::vector<Seen> seen_;
  std::vector<TokenLogprobEntry> logprobs_;  // of all tokens
  bool begun_ = false;
  int64_t calls_ = 0, reasoning_tokens_ = 0;
};

// Adds what is new to what was there; pieces of one call become one.
void append(ChatPiece& whole, ChatPiece piece);

}  // namespace easydel::server
