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

// The end of `before` that decides how what follows is decoded: it has text of its own.
std::span<const TokenId> context_in(const Tokenizer& tokenizer, std::span<const TokenId> before, bool skip) {
  for (size_t count = 16; count < before.size(); count *= 2)
    if (!tokenizer.decode(before.last(count), skip, false).empty()) return before.last(count);
  return before;
}

// What `after`, the text of more ids, adds to `before`. The last bytes of `before` may be part of a character that only
// `after` has whole. Empty: nothing.
std::string_view added_text(std::string_view before, std::string_view after) {
  while (!after.starts_with(before) && before.ends_with(replacement)) before.remove_suffix(replacement.size());
  return after.starts_with(before) ? after.substr(before.size()) : std::string_view();
}

}  // namespace

std::string decode_continuation(const Tokenizer& tokenizer, std::span<const TokenId> before,
                                std::span<const TokenId> ids, bool skip_special_tokens) {
  const std::span<const TokenId> context = context_in(tokenizer, before, skip_special_tokens);
  std::vector<TokenId> all(context.begin(), context.end());
  all.insert(all.end(), ids.begin(), ids.end());
  return std::string(added_text(tokenizer.decode(context, skip_special_tokens, false),
                                tokenizer.decode(all, skip_special_tokens, false)));
}

DecodeStream::DecodeStream(std::shared_ptr<const Tokenizer> tokenizer, bool skip_special_tokens,
                           std::span<const TokenId> before)
    : tokenizer_(std::move(tokenizer)), skip_special_tokens_(skip_special_tokens) {
  const std::span<const TokenId> context = context_in(*tokenizer_, before, skip_special_tokens_);
  ids_.assign(context.begin(), context.end());
  before_ = shown_ = ids_.size();
}

std::string DecodeStream::push(TokenId id) {
  ids_.push_back(id);
  if (is_byte_token(*tokenizer_, id)) return "";
  const std::span<const TokenId> window = std::span<const TokenId>(ids_).subspan(prefix_);
  const std::string before = tokenizer_->decode(window.first(shown_ - prefix_), skip_special_tokens_, false);
  const std::string after = tokenizer_->decode(window, skip_special_tokens_, false);
  if (after.ends_with(replacement)) return "";
  const std::string piece(added_text(before, after));
  if (piece.empty()) return "";
  prefix_ = shown_;
  shown_ = ids_.size();
  emitted_ += piece;
  return piece;
}

std::string DecodeStream::finish() {
  const std::span<const TokenId> ids(ids_);
  const std::string whole =
      decode_continuation(*tokenizer_, ids.first(before_), ids.subspan(before_), skip_special_tokens_);
  std::string rest = whole.starts_with(emitted_) ? whole.substr(emitted_.size()) : "";
  emitted_ += rest;
  prefix_ = shown_ = ids_.size();
  return rest;
}

}  // namespace easydel::text
