#include "easydel/generation/answer_text.h"

#include <algorithm>
#include <utility>

namespace easydel::generation {

AnswerText::AnswerText(std::shared_ptr<const text::Tokenizer> tokenizer, std::vector<std::string> stops,
                       std::span<const text::TokenId> prompt)
    : AnswerText(std::move(tokenizer), std::move(stops), prompt, Options()) {}

AnswerText::AnswerText(std::shared_ptr<const text::Tokenizer> tokenizer, std::vector<std::string> stops,
                       std::span<const text::TokenId> prompt, Options options)
    : tokenizer_(std::move(tokenizer)),
      options_(options),
      can_stop_(std::ranges::any_of(stops, [](const std::string& stop) { return !stop.empty(); })),
      stops_(std::move(stops)) {
  if (!tokenizer_) return;
  decoder_.emplace(tokenizer_, options_.skip_special_tokens, prompt);
  if (can_stop_) prompt_.assign(prompt.begin(), prompt.end());
}

std::string AnswerText::add(std::string piece) {
  stopped_ |= stops_.stopped();
  if (stops_.stopped() && options_.keeps_stop) piece += stop();
  text_ += piece;
  return piece;
}

std::string AnswerText::push(text::TokenId token, bool may_stop) {
  if (!decoder_) return {};
  if (can_stop_) tokens_.push_back(token);
  const std::string decoded = decoder_->push(token);
  if (!may_stop) {
    const std::string piece = stops_.finish() + decoded;
    text_ += piece;
    return piece;
  }
  const std::string piece = add(stops_.push(decoded));
  if (stopped() || !piece.empty() || !stop_is_held()) return piece;
  const std::string rest = finish();
  stopped_ = true;
  return rest;
}

std::string AnswerText::finish() {
  if (!decoder_ || stopped()) return {};
  std::string rest = stops_.push(decoder_->finish());
  rest += stops_.finish();
  return add(std::move(rest));
}

// Text that is held back as an incomplete character can already end with a stop string.
bool AnswerText::stop_is_held() const {
  if (!can_stop_) return false;
  const std::string whole = text::decode_continuation(*tokenizer_, prompt_, tokens_, options_.skip_special_tokens);
  const size_t shown = text_.size() + stops_.held().size();
  return shown < whole.size() && stops_.would_stop(std::string_view(whole).substr(shown));
}

}  // namespace easydel::generation
