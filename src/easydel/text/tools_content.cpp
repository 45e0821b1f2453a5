// Content, and everything that may stand in it without being content.
#include "easydel/text/tool_formats.h"

namespace easydel::text {

Task<size_t> read_content(ReadContext& context, const Markers& stops) {
  Incoming& in = context.in;
  Markers markers = stops;
  markers.insert(markers.end(), context.noise.begin(), context.noise.end());
  if (!context.late_reasoning_end.empty()) markers.push_back(context.late_reasoning_end);
  const Take take = [&context](std::string_view piece) { context.sink.content(piece); };
  while (true) {
    const size_t marker = co_await read_until(in, markers, take);
    if (marker == kNone || marker < stops.size()) co_return marker;
    in.take(markers[marker].size());
    const bool late = !context.late_reasoning_end.empty() && marker + 1 == markers.size();
    if (!late) continue;
    context.sink.content_was_reasoning();
    context.late_reasoning_end.clear();
    markers.pop_back();
  }
}

}  // namespace easydel::text
