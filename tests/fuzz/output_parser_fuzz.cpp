// Any bytes as an answer of a model, through each parser; the first byte says how it is cut.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "easydel/base/document.h"
#include "easydel/base/error.h"
#include "easydel/text/output/output_parser.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace easydel;
  using namespace easydel::text;
  static const Value tools = parse_json(
      R"([{"name": "f", "parameters": {"properties": {"a": {"type": "string"}, "b": {"type": "integer"}, "c": {"type": "object"}}}}])");
  static const auto names = tool_parser_names(), reasonings = reasoning_parser_names();
  if (size < 3) return 0;
  const OutputFormat format{names[data[1] % names.size()], reasonings[data[2] % reasonings.size()]};
  OutputOptions options;
  options.tools = tools;
  options.separate_reasoning = data[0] % 5 != 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 3, size - 3);
  const Message whole = parse_output(text, format, options);
  Message sum;
  const size_t step = 1 + data[0] % 7;
  options.certain = data[0] % 2 == 0;
  OutputParser parser(format, options);
  const auto add = [&](const Delta& delta) {
    if (options.certain && delta.content_withdrawn) std::abort();
    for (const Delta::Call& call : delta.calls)
      if (options.certain && call.withdrawn) std::abort();
    apply(delta, sum);
  };
  for (size_t at = 0; at < text.size(); at += step) add(parser.feed(text.substr(at, step)));
  add(parser.finish());
  bool same = whole.content == sum.content && whole.reasoning == sum.reasoning &&
              whole.tool_calls.size() == sum.tool_calls.size();
  for (size_t i = 0; same && i < whole.tool_calls.size(); ++i)
    same = whole.tool_calls[i].name == sum.tool_calls[i].name &&
           whole.tool_calls[i].arguments == sum.tool_calls[i].arguments;
  if (!same) std::abort();
  return 0;
}
