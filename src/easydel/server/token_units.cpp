#include "easydel/server/token_units.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace easydel::server {

TokenUnits::TokenUnits(std::shared_ptr<const text::Tokenizer> tokenizer, bool skip_special_tokens,
                       std::span<const text::TokenId> before)
    : decoder_(std::move(tokenizer), skip_special_tokens, before) {}

std::vector<TokenUnit> TokenUnits::take(std::span<const text::TokenId> ids, std::string_view text, bool finished) {
  for (const text::TokenId id : ids) {
    const std::string piece = decoder_.push(id);
    textless_.push_back(tokens_++);
    decoded_ += piece.size();
    if (!piece.empty()) waiting_.push_back({decoded_, std::exchange(textless_, {})});
  }
  text_ += text;
  const size_t available = taken_ + text_.size();
  std::vector<TokenUnit> out;
  size_t used = 0;
  const auto add = [&](size_t end, std::vector<size_t> tokens) {
    const size_t bytes = std::min(end, available) - std::min(taken_, available);
    out.push_back({text_.substr(used, bytes), std::move(tokens)});
    used += bytes, taken_ += bytes;
  };
  while (!waiting_.empty() && (waiting_.front().end <= available || finished)) {
    add(waiting_.front().end, std::move(waiting_.front().tokens));
    waiting_.pop_front();
  }
  // The end token and the like, and characters that were never completed.
  if (finished && (!textless_.empty() || taken_ < available)) add(available, std::exchange(textless_, {}));
  text_.erase(0, used);
  return out;
}

LogprobEntry logprob_entry(const text::Tokenizer& tokenizer, text::TokenId id, float logprob) {
  text::TextPlace place = text::TextPlace::inside;
  std::string bytes = tokenizer.bytes_of(id, place).value_or(tokenizer.token_of(id));
  return {.token = bytes, .bytes = bytes, .logprob = logprob};
}

}  // namespace easydel::server
