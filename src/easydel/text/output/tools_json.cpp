// Reads calls that are JSON objects.
#include <algorithm>

#include "easydel/text/output/tool_formats.h"

namespace easydel::text {
namespace {

bool is_one_of(const std::string& word, const std::vector<std::string>& words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// Buffers arguments until the name is known, then passes them on directly.
class PendingCall {
 public:
  explicit PendingCall(MessageSink& sink) : sink_(sink) {}

  std::string id;
  bool named = false, has_arguments = false;

  void identify(std::string text) {
    id = std::move(text);
    if (named) sink_.call_id(id);
  }
  void name(std::string name) {
    named = true;
    sink_.begin_call(std::move(name), id);
    sink_.arguments(kept_);
    kept_.clear();
  }
  void arguments(std::string_view json) {
    has_arguments = true;
    if (named)
      sink_.arguments(json);
    else
      kept_ += json;
  }

 private:
  MessageSink& sink_;
  std::string kept_;
};

// Reads the value of "arguments": an object, an object written as a string, or nothing.
Task<bool> read_arguments(ReadContext& context, PendingCall& call) {
  Incoming& in = context.in;
  co_await skip_space(in);
  if (!co_await in.need(1)) co_return false;
  const char first = in.remaining()[0];
  if (first == '{') {
    const Take take = [&call](std::string_view piece) { call.arguments(piece); };
    co_return co_await read_value(in, Notation::json, take);
  }
  if (first == '"') {
    std::string text;
    if (!co_await read_string(in, Notation::json, text)) co_return false;
    const std::optional<std::string> object = value_as_json(text, Notation::json);
    if (!object || object->front() != '{') co_return false;
    call.arguments(*object);
    co_return true;
  }
  const bool none = co_await take_if(in, "null");
  if (none) call.arguments("{}");
  co_return none;
}

// Reads the keys of an object that may be a call. `depth`: they may be nested in OpenAI's {"function": {...}}. A call
// of a list (`listed`) counts also if the text breaks off after its arguments.
Task<bool> read_call_keys(ReadContext& context, const JsonCalls& format, PendingCall& call, int depth, bool listed) {
  Incoming& in = context.in;
  co_await skip_space(in);
  const bool opened = co_await take_if(in, "{");
  if (!opened) co_return false;
  while (true) {
    co_await skip_space(in);
    const bool closed = co_await take_if(in, "}");
    if (closed) co_return true;
    std::string key;
    const bool is_key = co_await read_string(in, Notation::json, key);
    if (!is_key) co_return false;
    co_await skip_space(in);
    const bool colon = co_await take_if(in, ":");
    if (!colon) co_return false;
    co_await skip_space(in);
    const bool more = co_await in.need(1);
    if (!more) co_return false;
    const char first = in.remaining()[0];
    if (format.name_is_key && !call.named) {
      call.name(std::move(key));
      const bool good = co_await read_arguments(context, call);
      if (!good) co_return false;
    } else if ((is_one_of(key, format.name_keys) || key == "function") && first == '"' && !call.named) {
      std::string name;
      const bool good = co_await read_string(in, Notation::json, name);
      if (!good || name.empty()) co_return false;
      call.name(std::move(name));
    } else if (key == "function" && first == '{' && depth == 0) {
      const bool good = co_await read_call_keys(context, format, call, depth + 1, listed);
      if (!good) co_return false;
    } else if (is_one_of(key, format.argument_keys) && !call.has_arguments) {
      const bool good = co_await read_arguments(context, call);
      if (!good) co_return false;
    } else {
      std::string value;
      const Take take = [&value](std::string_view piece) { value += piece; };
      const bool good = co_await read_value(in, Notation::json, take);
      if (!good) co_return false;
      const bool identifies = (key == "id" || key == "tool_call_id") && value.starts_with('"') && call.id.empty();
      if (identifies) call.identify(value.substr(1, value.size() - 2));
    }
    co_await skip_space(in);
    const bool comma = co_await take_if(in, ",");
    if (comma) continue;
    const int next = co_await in.peek();
    if (next < 0 && listed && call.named && call.has_arguments) co_return true;
    const bool end = co_await take_if(in, "}");
    co_return end;
  }
}

Task<bool> read_call(ReadContext& context, const JsonCalls& format, bool listed) {
  PendingCall call(context.sink);
  const bool good = co_await read_call_keys(context, format, call, 0, listed);
  if (good && call.named && call.has_arguments) {
    context.sink.end_call();
    co_return true;
  }
  context.sink.withdraw_call();
  co_return false;
}

}  // namespace

Task<bool> read_json_call_list(ReadContext& context, const JsonCalls& format) {
  Incoming& in = context.in;
  co_await skip_space(in);
  const bool list = co_await take_if(in, "[");
  if (!list) co_return co_await read_call(context, format, false);
  co_await skip_space(in);
  while (true) {
    const bool good = co_await read_call(context, format, true);
    if (!good) co_return false;
    in.mark();  // a complete call stays a call, whatever follows
    co_await skip_space(in);
    const bool comma = co_await take_if(in, ",");
    if (!comma) break;
    co_await skip_space(in);
  }
  const bool closed = co_await take_if(in, "]");
  const int next = co_await in.peek();
  co_return closed || next < 0;
}

Task<> read_json_calls(ReadContext& context, const JsonCalls& format) {
  Incoming& in = context.in;
  Markers stops = format.opens;
  if (format.bare_object) stops.push_back("{");
  if (format.bare_list) stops.push_back("[");
  const Take bad = [](std::string_view) {};
  while (true) {
    const size_t stop = co_await read_content(context, stops);
    if (stop == none_index) co_return;
    in.mark();
    if (stop < format.opens.size()) in.take(format.opens[stop].size());
    bool good = true;
    do {  // several calls may follow one marker, one per line
      good = co_await read_json_call_list(context, format);
      if (!good && format.skips_bad_lines) {
        const Markers ends{"\n", format.closes[0]};
        const size_t end = co_await read_until(in, ends, bad);
        good = end != none_index && context.sink.calls() > 0;
      }
      if (!good) break;
      in.mark();
      co_await skip_space(in);
      const int next = co_await in.peek();
      if (next != '{' && next != ';') break;
      if (next == ';') in.take(1);
    } while (true);
    if (!good) context.sink.content(in.since_mark());
    in.forget_mark();
    if (good && !format.closes.empty()) {
      const size_t close = co_await next_is(in, format.closes);
      if (close != none_index) in.take(format.closes[close].size());
    }
  }
}

}  // namespace easydel::text
