#include "easydel/server/text_reader.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "easydel/base/error.h"
#include "easydel/base/json_text.h"
#include "easydel/text/unicode.h"

namespace easydel::server {
namespace {

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const size_t bytes = utf8_character_bytes(text);
    if (bytes == 0) return false;
    text.remove_prefix(bytes);
  }
  return true;
}

}  // namespace

TextReader::TextReader(std::shared_ptr<const TextReading> reading, int64_t index)
    : reading_(std::move(reading)), index_(index) {
  if (reading_->logprobs && reading_->has_answer)
    units_.emplace(reading_->model->tokenizer, reading_->skip_special_tokens, reading_->prompt);
}

std::string TextReader::key(text::TokenId id, text::TextPlace& place) const {
  const text::Tokenizer& tokenizer = *reading_->model->tokenizer;
  const std::string bytes = tokenizer.bytes_of(id, place).value_or(tokenizer.token_of(id));
  if (reading_->keys_are_ids) return str("token_id:", id);
  if (is_utf8(bytes)) return bytes;
  std::string out = "bytes:";
  for (const char byte : bytes) {
    constexpr std::string_view digits = "0123456789abcdef";
    out += {'\\', 'x', digits[uint8_t(byte) >> 4], digits[uint8_t(byte) & 15]};
  }
  return out;
}

void TextReader::add_token(text::TokenId id, const esurge::TokenLogprobs* row, TextPiece& piece) {
  TextPiece::Token& token = piece.tokens.emplace_back();
  token.text_offset = characters_;
  const text::TextPlace place = place_;
  token.token = key(id, place_);
  if (!row) return;
  token.logprob = row->chosen_logprob();
  const size_t most = std::min(row->token_ids.size(), size_t(*reading_->logprobs));
  for (size_t i = 0; i < row->token_ids.size(); ++i) {
    if (i >= most && i != row->chosen) continue;
    text::TextPlace same = place;
    std::string name = key(row->token_ids[i], same);
    // Two tokens may have one text.
    if (std::ranges::find(token.top, name, &std::pair<std::string, float>::first) != token.top.end())
      name = str("token_id:", row->token_ids[i]);
    token.top.emplace_back(std::move(name), row->logprobs[i]);
  }
}

void TextReader::echo(const std::vector<esurge::TokenLogprobs>& prompt_logprobs, TextPiece& piece) {
  if (!reading_->logprobs) {
    if (reading_->echo) piece.text = reading_->prompt_text;
    return;
  }
  if (reading_->echo) {
    text::DecodeStream decoder(reading_->model->tokenizer, reading_->skip_special_tokens);
    for (size_t i = 0; i < reading_->prompt.size(); ++i) {
      const text::TokenId id = reading_->prompt[i];
      const bool is_first = i <= reading_->added;
      if (i < reading_->added)
        key(id, place_);
      else
        add_token(id, is_first || i > prompt_logprobs.size() ? nullptr : &prompt_logprobs[i - 1], piece);
      characters_ += text::count_characters(decoder.push(id));
    }
    piece.text = reading_->prompt_text;
  } else {
    for (const text::TokenId id : reading_->prompt) key(id, place_);
  }
  characters_ = text::count_characters(reading_->prompt_text);
}

TextPiece TextReader::read(const esurge::CompletionOutput& output,
                           const std::vector<esurge::TokenLogprobs>& prompt_logprobs) {
  TextPiece piece{.index = index_, .has_logprobs = reading_->logprobs.has_value()};
  if (!std::exchange(begun_, true)) echo(prompt_logprobs, piece);
  if (output.finish_reason) piece.finish_reason = name_of(*output.finish_reason);
  if (!reading_->has_answer) {
    if (output.finish_reason) piece.finish_reason = name_of(esurge::FinishReason::length);
    return piece;
  }
  if (!units_) {
    piece.text += output.text;
    return piece;
  }
  std::ranges::copy(output.token_ids, std::back_inserter(ids_));
  std::ranges::copy(output.logprobs, std::back_inserter(rows_));
  for (const TokenUnit& unit : units_->take(output.token_ids, output.text, output.finish_reason.has_value())) {
    for (const size_t token : unit.tokens) add_token(ids_[token], &rows_[token], piece);
    characters_ += text::count_characters(unit.text);
    piece.text += unit.text;
  }
  return piece;
}

void append(TextPiece& whole, TextPiece piece) {
  whole.text += piece.text;
  whole.has_logprobs |= piece.has_logprobs;
  std::ranges::move(piece.tokens, std::back_inserter(whole.tokens));
  append_ids(whole.token_ids, std::move(piece.token_ids));
  if (whole.prompt_members.empty()) whole.prompt_members = std::move(piece.prompt_members);
  if (!piece.finish_reason.empty()) whole.finish_reason = std::move(piece.finish_reason);
}

}  // namespace easydel::server
