#include "easydel/server/chat_reader.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace easydel::server {
namespace {

text::OutputOptions certain(text::OutputOptions options) {
  options.certain = true;  // what was sent cannot be withdrawn
  return options;
}

TokenLogprobEntry row_entry(const text::Tokenizer& tokenizer, const esurge::TokenLogprobs& row, int64_t top) {
  TokenLogprobEntry out;
  out.chosen = logprob_entry(tokenizer, row.token_ids[row.chosen], row.chosen_logprob());
  // The row has the chosen token in addition to the most likely ones.
  for (size_t i = 0; i < std::min(row.token_ids.size(), size_t(top)); ++i)
    out.top.push_back(logprob_entry(tokenizer, row.token_ids[i], row.logprobs[i]));
  return out;
}

}  // namespace

bool ChatReading::engine_skips_special_tokens() const {
  return skip_special_tokens && format.tools.empty() && format.reasoning.empty();
}

bool ChatReading::needs_tokens() const { return top_logprobs || !format.reasoning.empty(); }

ChatReader::ChatReader(std::shared_ptr<const ChatReading> reading, int64_t index)
    : reading_(std::move(reading)), index_(index), parser_(reading_->format, certain(reading_->options)) {
  if (reading_->needs_tokens())
    units_.emplace(reading_->model->tokenizer, reading_->engine_skips_special_tokens(), reading_->prompt);
  if (reading_->skip_special_tokens && !reading_->engine_skips_special_tokens()) {
    content_filter_.emplace(reading_->model->special_texts);
    reasoning_filter_.emplace(reading_->model->special_texts);
  }
}

void ChatReader::take_tokens(const std::vector<size_t>& tokens, bool content, ChatPiece& piece) {
  if (!content) reasoning_tokens_ += int64_t(tokens.size());
  if (!content || !reading_->top_logprobs) return;
  for (const size_t token : tokens) piece.logprobs.push_back(logprobs_[token]);
}

// Finds the text of a delta again in what was given to the parser. A parser leaves text out, and never reorders it.
void ChatReader::attribute(const std::string& text, bool content, ChatPiece& piece) {
  if (text.empty() || seen_.empty()) return;
  std::string all;
  for (const Seen& unit : seen_) all += unit.text;
  size_t begin = all.find(text), end = begin == std::string::npos ? 0 : begin + text.size();
  std::vector<uint8_t> used(all.size());
  if (begin != std::string::npos) {
    std::fill(used.begin() + int64_t(begin), used.begin() + int64_t(end), 1);
  } else {
    // Something was left out in the middle.
    for (const char c : text) {
      const size_t at = all.find(c, end);
      if (at == std::string::npos) break;
      used[at] = 1, end = at + 1;
    }
  }
  size_t first = 0, done = 0;
  for (Seen& unit : seen_) {
    const size_t last = first + unit.text.size();
    if (first >= end) break;
    if (std::find(used.begin() + int64_t(first), used.begin() + int64_t(last), 1) != used.begin() + int64_t(last))
      take_tokens(std::exchange(unit.tokens, {}), content, piece);
    if (last > end) {
      unit.text.erase(0, end - first);
      break;
    }
    first = last, ++done;
  }
  seen_.erase(seen_.begin(), seen_.begin() + int64_t(done));
}

void ChatReader::add(text::Delta delta, ChatPiece& piece) {
  if (units_) {
    attribute(delta.reasoning, false, piece);
    attribute(delta.content, true, piece);
  }
  piece.reasoning_content += reasoning_filter_ ? reasoning_filter_->feed(delta.reasoning) : delta.reasoning;
  piece.content += content_filter_ ? content_filter_->feed(delta.content) : delta.content;
  for (text::Delta::Call& call : delta.calls) {
    ToolCallPiece one{.index = int64_t(call.index)};
    if (one.index >= calls_) {
      calls_ = one.index + 1;
      one.id = call.id.empty() ? new_completion_id("call_") : std::move(call.id);
      one.name = std::move(call.name);
      piece.tool_calls.push_back(std::exchange(one, {.index = int64_t(call.index)}));
    }
    one.arguments = std::move(call.arguments);
    if (!one.arguments.empty()) piece.tool_calls.push_back(std::move(one));
  }
}

ChatPiece ChatReader::read(const esurge::CompletionOutput& output) {
  ChatPiece piece{.index = index_};
  if (!std::exchange(begun_, true)) piece.content = reading_->prefix;
  const bool finished = output.finish_reason.has_value();
  if (units_) {
    if (reading_->top_logprobs)
      for (const esurge::TokenLogprobs& row : output.logprobs)
        logprobs_.push_back(row_entry(*reading_->model->tokenizer, row, *reading_->top_logprobs));
    for (TokenUnit& unit : units_->take(output.token_ids, output.text, finished)) {
      seen_.push_back({unit.text, std::move(unit.tokens)});
      if (!unit.text.empty()) add(parser_.feed(unit.text), piece);
    }
  } else {
    add(parser_.feed(output.text), piece);
  }
  if (!finished) return piece;
  add(parser_.finish(), piece);
  if (reasoning_filter_) piece.reasoning_content += reasoning_filter_->finish();
  if (content_filter_) piece.content += content_filter_->finish();
  // The end token belongs to the content that it ends.
  if (calls_ == 0 && !seen_.empty() && std::ranges::all_of(seen_, [](const Seen& unit) { return unit.text.empty(); }))
    for (const Seen& unit : seen_) take_tokens(unit.tokens, true, piece);
  piece.finish_reason = name_of(*output.finish_reason);
  if (calls_ > 0 && output.finish_reason == esurge::FinishReason::stop) piece.finish_reason = "tool_calls";
  return piece;
}

void append(ChatPiece& whole, ChatPiece piece) {
  whole.content += piece.content;
  whole.reasoning_content += piece.reasoning_content;
  for (ToolCallPiece& call : piece.tool_calls) {
    const auto known = std::ranges::find(whole.tool_calls, call.index, &ToolCallPiece::index);
    if (known == whole.tool_calls.end())
      whole.tool_calls.push_back(std::move(call));
    else
      known->arguments += call.arguments;
  }
  std::ranges::move(piece.logprobs, std::back_inserter(whole.logprobs));
  append_ids(whole.token_ids, std::move(piece.token_ids));
  if (!piece.finish_reason.empty()) whole.finish_reason = std::move(piece.finish_reason);
}

}  // namespace easydel::server
