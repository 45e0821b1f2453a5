// The text of one answer while its tokens come: decoded, and cut before the first stop string.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "easydel/generation/stopping.h"
#include "easydel/text/tokenizers/tokenizer.h"

namespace easydel::generation {

class AnswerText {
 public:
  struct Options {
    bool skip_special_tokens = true;
    bool keeps_stop = false;  // a stop string stays at the end of the text
  };
  // Without a tokenizer there is no text, and nothing stops.
  AnswerText(std::shared_ptr<const text::Tokenizer> tokenizer, std::vector<std::string> stops,
             std::span<const text::TokenId> prompt);
  AnswerText(std::shared_ptr<const text::Tokenizer> tokenizer, std::vector<std::string> stops,
             std::span<const text::TokenId> prompt, Options options);

  // Adds a token that does not end the answer; returns the text that is final now, perhaps none. Afterwards stopped()
  // says whether the text ends before a stop string. may_stop false: stop strings that end in this token are text.
  std::string push(text::TokenId token, bool may_stop = true);
  // Nothing more will come: returns the rest of the text, which may end before a stop string, too.
  std::string finish();

  const std::string& text() const { return text_; }
  bool stopped() const { return stopped_; }
  const std::string& stop() const { return stops_.stop(); }  // the string that stopped it

 private:
  bool stop_is_held() const;
  std::string add(std::string piece);

  std::shared_ptr<const text::Tokenizer> tokenizer_;
  Options options_;
  bool can_stop_, stopped_ = false;
  std::vector<text::TokenId> prompt_, tokens_;  // kept if there are stop strings
  std::optional<text::DecodeStream> decoder_;
  StopStrings stops_;
  std::string text_;
};

}  // namespace easydel::generation
