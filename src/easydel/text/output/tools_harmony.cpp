// OpenAI's harmony format: messages with a channel and a recipient. Calls are messages to functions.NAME; messages to
// tools that were not offered (python, browser) are neither content nor calls.
#include "easydel/text/output/tool_formats.h"

namespace easydel::text {
namespace {

constexpr size_t longest_header = 4096;

struct Header {
  std::string channel, recipient;
};

// `assistant to=functions.f<|channel|>commentary <|constrain|>json`, in any order.
Header header_of(const std::string& text) {
  Header out;
  const auto word_at = [&](size_t at) {
    return text.substr(at, std::min(text.find_first_of(" \t\r\n<", at), text.size()) - at);
  };
  if (const size_t at = text.rfind("<|channel|>"); at != std::string::npos) out.channel = word_at(at + 11);
  if (const size_t at = text.rfind("to="); at != std::string::npos) out.recipient = word_at(at + 3);
  return out;
}

}  // namespace

Task<> read_harmony(ReadContext& context) {
  Incoming& in = context.in;
  context.sink.content_after_calls = true;
  const Markers headers{"<|channel|>", "<|start|>", " to=", "to=", "<|message|>"};
  const Markers header_end{"<|message|>", "<|end|>"};
  const Markers ends{"<|end|>", "<|call|>", "<|return|>", "<|start|>", "<|channel|>"};
  // Text that does not begin with a marker is content.
  size_t begins = co_await next_is(in, headers);
  if (begins == none_index) {
    const Markers later{"<|channel|>", "<|start|>"};
    begins = co_await read_content(context, later);
    if (begins == none_index) co_return;
  }
  while (co_await in.need(1)) {
    std::string head;
    const size_t ended = co_await read_until(in, header_end, head, longest_header);
    if (ended == none_index) co_return;
    in.take(header_end[ended].size());
    if (ended == 1) continue;
    const Header header = header_of(head);
    const bool call = context.options.parse_tools && header.recipient.starts_with("functions.");
    if (call && header.recipient.size() > 10) {
      context.sink.begin_call(header.recipient.substr(10));
      const Take take = [&context](std::string_view piece) { context.sink.arguments(piece); };
      co_await skip_space(in);
      const bool good = co_await read_value(in, Notation::json, take);
      const bool more = co_await in.need(1);
      if (good || !more)
        context.sink.end_call();
      else
        context.sink.withdraw_call();
    }
    const bool dropped = call || (!header.recipient.empty() && header.recipient != "assistant");
    const bool thought = header.channel == "analysis";
    const bool kept_raw = thought && !context.options.separate_reasoning;
    if (kept_raw) context.sink.content("<|channel|>analysis<|message|>");
    const Take take = [&](std::string_view piece) {
      if (dropped) return;
      if (thought && !kept_raw)
        context.sink.reasoning(piece);
      else
        context.sink.content(piece);
    };
    const size_t end = co_await read_until(in, ends, take);
    if (end == none_index) co_return;
    if (kept_raw) context.sink.content(ends[end] == "<|end|>" ? "<|end|>" : "");
    if (end < 3) in.take(ends[end].size());
  }
}

}  // namespace easydel::text
