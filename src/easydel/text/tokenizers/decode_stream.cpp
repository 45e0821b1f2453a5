// Streaming decode: decodes the last settled ids together with the new ones; the new text is what this adds to the text
// of the settled ids alone. Ids are settled only when no later id can change their text.
#include "easydel/text/tokenizers/tokenizer.h"

namespace easydel::text {
namespace {

constexpr std::string_view replacement = "\xEF\xBF\xBD";

// A token such as <0xE2> that stands for a byte. A run of them is decoded as a whole, so it is held until it ends.
bool is_byte_token(const Tokenizer& tokenizer, TokenId id) {
  std::string token = tokenizer.token_of(id);
  return token.size() == 6 && token.starts_with("<0x") && token.ends_with('>') &&
         tokenizer.decode({&id, 1}, false, false) != token;
}

}  // namespace

DecodeStream::DecodeStream(std::shared_ptr<const Tokenizer> tokenizer, bool skip_special_tokens)
    : tokenizer_(std::move(tokenizer)), skip_special_tokens_(skip_special_tokens) {}

std::string DecodeStream::push(TokenId id) {
  ids_.push_back(id);
  if (is_byte_token(*tokenizer_, id)) return "";
  std::span<const TokenId> window(ids_.begin() + prefix_, ids_.end());
  std::string before = tokenizer_->decode(window.first(shown_ - prefix_), skip_special_tokens_, false);
  std::string after = tokenizer_->decode(window, skip_special_tokens_, false);
  if (after.size() <= before.size() || !after.starts_with(before) || after.ends_with(replacement)) return "";
  prefix_ = shown_;
  shown_ = ids_.size();
  std::string piece = after.substr(before.size());
  emitted_ += piece;
  return piece;
}

std::string DecodeStream::finish() {
  std::string whole = tokenizer_->decode(ids_, skip_special_tokens_, false);
  std::string rest = whole.starts_with(emitted_) ? whole.substr(emitted_.size()) : "";
  emitted_ += rest;
  prefix_ = shown_ = ids_.size();
  return rest;
}

}  // namespace easydel::text
