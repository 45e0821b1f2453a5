#include "easydel/generation/score_text.h"

#include <algorithm>
#include <array>

#include "easydel/base/error.h"
#include "easydel/text/unicode.h"

namespace easydel::generation {
namespace {

using text::TokenId;

// Python's str.isspace(), by which str.rstrip() goes: also the four separators of ASCII.
bool is_python_space(char32_t c) { return text::is_space(c) || (c >= 0x1c && c <= 0x1f); }

TokenId prefix_of(const text::Tokenizer& tokenizer, std::optional<TokenId> given) {
  if (given) return *given;
  if (const auto bos = tokenizer.bos_id()) return *bos;
  if (const auto eos = tokenizer.eos_id()) return *eos;
  refuse("tokenizer", "it has no BOS and no EOS token, so an empty context has no token",
         "give prefix_token_id, or contexts that are not empty");
}

}  // namespace

ScoreText::ScoreText(std::shared_ptr<const text::Tokenizer> tokenizer, std::optional<TokenId> prefix)
    : tokenizer_(std::move(tokenizer)),
      prefix_(prefix_of(*tokenizer_, prefix)),
      prefix_text_(tokenizer_->decode(std::array{prefix_}, false)) {}

std::vector<TokenId> ScoreText::encode(std::string_view text) const {
  return tokenizer_->encode(text, {.add_special_tokens = !text.starts_with(prefix_text_)});
}

ScoreRequest ScoreText::pair(std::string context, std::string continuation) const {
  ScoreRequest request;
  if (context.empty()) {
    request.continuation = tokenizer_->encode(continuation, {.add_special_tokens = false});
    request.context = {prefix_};
    if (!request.continuation.empty() && request.continuation.front() == prefix_)
      request.continuation.erase(request.continuation.begin());
  } else {
    context = text::replace_invalid(context);
    const size_t length = stripped_length(context);
    continuation.insert(0, context, length);
    context.resize(length);
    request.context = encode(context);
    const std::vector<TokenId> whole = encode(context + continuation);
    if (whole.size() > request.context.size())
      request.continuation.assign(whole.begin() + std::ptrdiff_t(request.context.size()), whole.end());
  }
  return request;
}

std::vector<ScoreRequest> ScoreText::rolling(std::string_view text, int64_t max_length) const {
  return rolling(encode(text), max_length);
}

std::vector<ScoreRequest> ScoreText::rolling(const std::vector<TokenId>& ids, int64_t max_length) const {
  const auto total = int64_t(ids.size());
  const auto at = [&ids](int64_t index) { return ids.begin() + std::ptrdiff_t(index); };
  std::vector<ScoreRequest> out;
  for (int64_t done = 0; done < total;) {
    const int64_t end = std::min(done + max_length, total);
    ScoreRequest request;
    // The first window begins with the prefix token. A later one is as long as the first, its context the tokens
    // before.
    if (done == 0)
      request.context = {prefix_};
    else
      request.context.assign(at(end - max_length - 1), at(done));
    request.continuation.assign(at(done), at(end));
    out.push_back(std::move(request));
    done = end;
  }
  return out;
}

std::vector<ScoreRequest> ScoreText::strided(std::string_view text, int64_t max_length, int64_t stride) const {
  const std::vector<TokenId> ids = encode(text);
  const auto total = int64_t(ids.size());
  std::vector<ScoreRequest> out;
  for (int64_t begin = 0, done = 1; done < total; begin += stride) {
    const int64_t end = std::min(begin + max_length, total);
    const auto at = [&ids](int64_t index) { return ids.begin() + std::ptrdiff_t(index); };
    // A window of its own whole length has no token before its first, which then predicts nothing.
    const int64_t first = std::max(done, begin + 1);
    if (end > first) out.push_back({{at(begin), at(first)}, {at(first), at(end)}});
    done = end;
  }
  return out;
}

size_t leading_space(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const size_t before = at;
    if (!is_python_space(text::next_character(text, at))) return before;
  }
  return text.size();
}

size_t stripped_length(std::string_view text) {
  size_t length = 0;
  for (size_t at = 0; at < text.size();)
    if (!is_python_space(text::next_character(text, at))) length = at;
  return length;
}

std::string cut_at(std::string text, const std::vector<std::string>& stops) {
  for (const std::string& stop : stops)
    if (!stop.empty()) text.resize(std::min(text.size(), text.find(stop)));
  return text;
}

}  // namespace easydel::generation
