// White space at the edges, and withdrawn calls.
#include "easydel/text/output/message_sink.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace easydel::text {
namespace {

constexpr std::string_view space = " \t\r\n";

// The trailing white space of `text`.
size_t trailing_space(std::string_view text) {
  const size_t last = text.find_last_not_of(space);
  return last == std::string_view::npos ? 0 : last + 1;
}

}  // namespace

void MessageSink::content(std::string_view text) {
  if ((calls_ > 0 && !content_after_calls) || text.empty()) return;
  if (skips_space_) {
    text.remove_prefix(std::min(text.find_first_not_of(space), text.size()));
    if (text.empty()) return;
    skips_space_ = false;
  }
  const size_t solid = trailing_space(text);
  if (solid > 0) {
    held_ += text.substr(0, solid);
    given_content_ += held_;
    delta_.content += std::exchange(held_, {});
    content_begun_ = true;
  }
  held_ += text.substr(solid);
}

void MessageSink::reasoning(std::string_view text) {
  if (!reasoning_begun_) text.remove_prefix(std::min(text.find_first_not_of(space), text.size()));
  if (text.empty()) return;
  reasoning_begun_ = true;
  const size_t solid = trailing_space(text);
  if (solid > 0) delta_.reasoning += std::exchange(held_reasoning_, {}).append(text.substr(0, solid));
  held_reasoning_ += text.substr(solid);
}

void MessageSink::end_reasoning() {
  held_reasoning_.clear();
  if (!content_begun_) skips_space_ = true, held_.clear();
}

void MessageSink::withdraw_content() {
  delta_.content_withdrawn = delta_.content_withdrawn || (content_begun_ && !certain);
  delta_.content.clear();
}

void MessageSink::content_was_reasoning() {
  std::string was = std::exchange(given_content_, {}) + std::exchange(held_, {});
  withdraw_content();
  content_begun_ = false;
  content_may_be_reasoning = false;
  reasoning(was);
  end_reasoning();
}

void MessageSink::begin_call(std::string name, std::string id) {
  if (calls_ == 0 && !trims_before_calls && content_begun_) {
    given_content_ += held_;
    delta_.content += std::exchange(held_, {});
  }
  Delta::Call call;
  call.index = calls_;
  call.name = std::move(name);
  call.id = std::move(id);
  delta_.calls.push_back(std::move(call));
  in_call_ = true;
}

Delta::Call& MessageSink::current() {
  if (delta_.calls.empty() || delta_.calls.back().index != calls_) delta_.calls.emplace_back().index = calls_;
  return delta_.calls.back();
}

void MessageSink::arguments(std::string_view json) { current().arguments += json; }

void MessageSink::call_id(std::string_view id) { current().id += id; }

void MessageSink::end_call() {
  if (content_excludes_calls && calls_ == 0) withdraw_content();
  held_.clear();
  given_content_.clear();
  in_call_ = false;
  ++calls_;
}

void MessageSink::withdraw_call() {
  if (!std::exchange(in_call_, false)) return;
  auto& calls = delta_.calls;
  const bool begun_here = certain || (!calls.empty() && calls.back().index == calls_ && !calls.back().name.empty());
  if (!calls.empty() && calls.back().index == calls_) calls.pop_back();
  if (begun_here) return;
  Delta::Call gone;
  gone.index = calls_;
  gone.withdrawn = true;
  calls.push_back(std::move(gone));
}

void MessageSink::finish() {
  if (calls_ == 0 && !skips_space_) delta_.content += std::exchange(held_, {});
  finished_ = true;
}

Delta MessageSink::take() { return certain && !finished_ ? take_certain() : std::exchange(delta_, {}); }

Delta MessageSink::take_certain() {
  Delta out;
  out.reasoning = std::exchange(delta_.reasoning, {});
  if (!content_excludes_calls && !content_may_be_reasoning) out.content = std::exchange(delta_.content, {});
  auto& calls = delta_.calls;
  const auto incomplete = std::ranges::find_if(calls, [&](const Delta::Call& call) { return call.index >= calls_; });
  out.calls.assign(std::make_move_iterator(calls.begin()), std::make_move_iterator(incomplete));
  calls.erase(calls.begin(), incomplete);
  return out;
}

void apply(const Delta& delta, Message& message) {
  if (delta.content_withdrawn) message.content.clear();
  message.content += delta.content;
  message.reasoning += delta.reasoning;
  for (const Delta::Call& call : delta.calls) {
    if (call.withdrawn) {
      message.tool_calls.resize(call.index);
      continue;
    }
    if (call.index == message.tool_calls.size()) message.tool_calls.emplace_back();
    ToolCall& target = message.tool_calls[call.index];
    target.id += call.id;
    target.name += call.name;
    target.arguments += call.arguments;
  }
}

}  // namespace easydel::text
