// Reads content, and the markers in it that are not content.
#include "easydel/text/output/tool_formats.h"

namespace easydel::text {

Task<size_t> read_content(ReadContext& context, const Markers& stops) {
  Incoming& in = context.in;
  Markers markers = stops;
  markers.insert(markers.end(), context.noise.begin(), context.noise.end());
  if (!context.late_reasoning_end.empty()) markers.push_back(context.late_reasoning_end);
  const Take take = [&context](std::string_view piece) { context.sink.content(piece); };
  while (true) {
    const size_t marker = co_await read_until(in, markers, take);
    if (marker == none_index || marker < stops.size()) co_return marker;
    in.take(markers[marker].size());
    const bool late = !context.late_reasoning_end.empty() && marker + 1 == markers.size();
    if (!late) continue;
    context.sink.content_was_reasoning();
    context.late_reasoning_end.clear();
    markers.pop_back();
  }
}

Task<> read_thinking_as_content(ReadContext& context, const std::string& open, const std::string& close) {
  Incoming& in = context.in;
  size_t at = 0;
  int first = co_await in.peek();
  while (is_blank(first)) first = co_await in.peek(++at);
  const bool long_enough = co_await in.need(at + open.size());
  if (!long_enough || !in.remaining().substr(at).starts_with(open)) co_return;
  const Take take = [&context](std::string_view piece) { context.sink.content(piece); };
  const Markers ends{close};
  const size_t end = co_await read_until(in, ends, take);
  if (end == none_index) co_return;
  context.sink.content(close);
  in.take(close.size());
}

}  // namespace easydel::text
