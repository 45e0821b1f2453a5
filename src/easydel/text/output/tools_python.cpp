// Reads calls in Python's notation, and Gemma's.
#include "easydel/text/output/tool_formats.h"

namespace easydel::text {
namespace {

constexpr int deepest_call = 50;

// Reads [f(a=1), g()], starting at the bracket.
Task<bool> read_python_list(ReadContext& context) {
  Incoming& in = context.in;
  const bool opened = co_await take_if(in, "[");
  if (!opened) co_return false;
  while (true) {
    co_await skip_space(in);
    const bool good = co_await read_python_call(context);
    if (!good) co_return false;
    in.mark();
    co_await skip_space(in);
    const bool comma = co_await take_if(in, ",");
    if (comma) continue;
    const bool closed = co_await take_if(in, "]");
    const bool more = co_await in.need(1);
    co_return closed || !more;
  }
}

// Reads f(a=1), one per line or separated by commas.
Task<bool> read_python_lines(ReadContext& context, const Markers& closes) {
  Incoming& in = context.in;
  while (true) {
    const bool good = co_await read_python_call(context);
    if (!good) co_return false;
    in.mark();
    co_await skip_space(in);
    const bool comma = co_await take_if(in, ",");
    if (comma) co_await skip_space(in);
    const bool more = co_await in.need(1);
    const size_t close = co_await next_is(in, closes);
    if (!more || close != none_index) co_return true;
  }
}

// Reads the list at the beginning of the text, if there is one.
Task<> read_first_list(ReadContext& context) {
  Incoming& in = context.in;
  size_t at = 0;
  int first = co_await in.peek();
  while (is_blank(first)) first = co_await in.peek(++at);
  if (first != '[') co_return;
  in.mark();
  in.take(at);
  const bool good = co_await read_python_list(context);
  if (!good) {
    context.sink.withdraw_call();
    context.sink.content(in.since_mark());
  }
  in.forget_mark();
}

}  // namespace

Task<bool> read_python_call(ReadContext& context) {
  Incoming& in = context.in;
  std::string name = co_await read_name(in);
  if (name.empty()) co_return false;
  const bool opened = co_await take_if(in, "(");
  if (!opened) co_return false;
  context.sink.begin_call(std::move(name));
  context.sink.arguments("{");
  const Take take = [&context](std::string_view piece) { context.sink.arguments(piece); };
  for (bool first = true;; first = false) {
    co_await skip_space(in);
    bool closed = co_await take_if(in, ")");
    if (!closed) {
      const std::string key = co_await read_name(in);
      if (key.empty()) co_return false;
      co_await skip_space(in);
      const bool equals = co_await take_if(in, "=");
      if (!equals) co_return false;
      context.sink.arguments((first ? "" : ", ") + json_quoted(key) + ": ");
      const bool good = co_await read_value(in, Notation::python, take);
      if (!good) co_return false;
      co_await skip_space(in);
      const bool comma = co_await take_if(in, ",");
      if (comma) continue;
      closed = co_await take_if(in, ")");
      if (!closed) co_return false;
    }
    context.sink.arguments("}");
    context.sink.end_call();
    co_return true;
  }
}

Task<> read_python_calls(ReadContext& context, const PythonCalls& format) {
  Incoming& in = context.in;
  if (format.bare_list) co_await read_first_list(context);
  while (true) {
    const size_t stop = co_await read_content(context, format.opens);
    if (stop == none_index) co_return;
    in.mark();
    in.take(format.opens[stop].size());
    co_await skip_space(in);
    bool good = false;
    const bool more = co_await in.need(1);
    if (more && in.remaining()[0] == '[')
      good = co_await read_python_list(context);
    else if (more && format.lines)
      good = co_await read_python_lines(context, format.closes);
    if (!good) {
      context.sink.withdraw_call();
      context.sink.content(in.since_mark());
    }
    in.forget_mark();
    co_await skip_space(in);
    const size_t close = co_await next_is(in, format.closes);
    if (good && close != none_index) in.take(format.closes[close].size());
  }
}

namespace {

Task<bool> read_gemma_value(ReadContext& context, const GemmaCalls& format, int depth);

// Reads {key:value,...} with its braces; keys may be quoted.
Task<bool> read_gemma_object(ReadContext& context, const GemmaCalls& format, int depth) {
  Incoming& in = context.in;
  in.take(1);
  context.sink.arguments("{");
  for (bool first = true;; first = false) {
    co_await skip_space(in);
    const bool closed = co_await take_if(in, "}");
    if (closed) break;
    if (!first) {
      const bool comma = co_await take_if(in, ",");
      if (!comma) co_return false;
      co_await skip_space(in);
    }
    std::string key;
    const bool quoted = co_await take_if(in, format.quote);
    const Markers ends{quoted ? format.quote : ":"};
    const size_t end = co_await read_until(in, ends, key, 512);
    if (end == none_index || key.empty() || key.find_first_of("{}") != std::string::npos) co_return false;
    in.take(ends[0].size());
    if (quoted) {
      const bool colon = co_await take_if(in, ":");
      if (!colon) co_return false;
    }
    context.sink.arguments((first ? "" : ", ") + json_quoted(key) + ": ");
    const bool good = co_await read_gemma_value(context, format, depth + 1);
    if (!good) co_return false;
  }
  context.sink.arguments("}");
  co_return true;
}

Task<bool> read_gemma_array(ReadContext& context, const GemmaCalls& format, int depth) {
  Incoming& in = context.in;
  in.take(1);
  context.sink.arguments("[");
  for (bool first = true;; first = false) {
    co_await skip_space(in);
    const bool closed = co_await take_if(in, "]");
    if (closed) break;
    if (!first) {
      const bool comma = co_await take_if(in, ",");
      if (!comma) co_return false;
      context.sink.arguments(", ");
    }
    const bool good = co_await read_gemma_value(context, format, depth + 1);
    if (!good) co_return false;
  }
  context.sink.arguments("]");
  co_return true;
}

Task<bool> read_gemma_value(ReadContext& context, const GemmaCalls& format, int depth) {
  Incoming& in = context.in;
  if (depth > deepest_call) co_return false;
  co_await skip_space(in);
  const bool quoted = co_await take_if(in, format.quote);
  if (quoted) {
    context.sink.arguments("\"");
    const Take take = [&context](std::string_view piece) {
      std::string out;
      append_json_escaped(out, piece);
      context.sink.arguments(out);
    };
    const Markers ends{format.quote};
    const size_t end = co_await read_until(in, ends, take);
    if (end == none_index) co_return false;
    in.take(format.quote.size());
    context.sink.arguments("\"");
    co_return true;
  }
  const bool more = co_await in.need(1);
  if (!more) co_return false;
  const char first = in.remaining()[0];
  if (first == '{') co_return co_await read_gemma_object(context, format, depth);
  if (first == '[') co_return co_await read_gemma_array(context, format, depth);
  if (first == '"') {
    const Take take = [&context](std::string_view piece) { context.sink.arguments(piece); };
    co_return co_await read_value(in, Notation::json, take);
  }
  std::string word;
  const Markers ends{",", "}", "]"};
  const size_t end = co_await read_until(in, ends, word, 4096);
  if (end == none_index) co_return false;
  word.erase(word.find_last_not_of(" \t\r\n") + 1);
  context.sink.arguments(coerced(word, ArgumentType{}, true));
  co_return true;
}

}  // namespace

Task<> read_gemma_calls(ReadContext& context, const GemmaCalls& format) {
  Incoming& in = context.in;
  const Markers stops{format.open};
  while (true) {
    const size_t stop = co_await read_content(context, stops);
    if (stop == none_index) co_return;
    in.mark();
    in.take(format.open.size());
    co_await skip_space(in);
    bool good = co_await take_if(in, "call:");
    if (good) {
      std::string name = co_await read_name(in);
      const bool more = co_await in.need(1);
      good = !name.empty() && more && in.remaining()[0] == '{';
      if (good) {
        context.sink.begin_call(std::move(name));
        good = co_await read_gemma_object(context, format, 0);
      }
      if (good) context.sink.end_call();
    }
    if (!good) {
      context.sink.withdraw_call();
      context.sink.content(in.since_mark());
    }
    in.forget_mark();
    if (good) {
      const bool closed = co_await take_if(in, format.close);
      static_cast<void>(closed);
    }
  }
}

}  // namespace easydel::text
