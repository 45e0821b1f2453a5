// What a chat template writes between two turns of the model, so that a conversation grows by appending: what the model
// wrote stays as it was sampled.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "easydel/text/render_chat.h"

namespace easydel::train {

class TurnTemplate {
 public:
  // UserError if the tokenizer has no chat template.
  explicit TurnTemplate(std::shared_ptr<const text::Tokenizer> tokenizer);

  // The message that takes the place of a turn of the model in `messages` below.
  static Value sampled_turn();
  // The text of a conversation that the model is to continue.
  std::string prompt(const Value& messages, text::ChatOptions options) const;
  // The tokens between a turn of the model, which follows `messages`, and its next one: the end of the turn, the
  // messages `added`, and the beginning of the next turn. `last`: the turn's last token; if that ends turns in the
  // template, it is not repeated. UserError if the template changes earlier text when messages are added.
  std::vector<int32_t> between(const Value& messages, const std::vector<Value>& added, text::ChatOptions options,
                               std::optional<int32_t> last) const;

 private:
  [[noreturn]] void refuse_change(const std::string& before, const std::string& after) const;

  std::shared_ptr<const text::Tokenizer> tokenizer_;
  text::ChatRenderer renderer_;
};

}  // namespace easydel::train
