// Passes one answer through its readers: reasoning first, then content and calls.
#include "easydel/text/output/output_parser.h"

#include "easydel/base/error.h"
#include "easydel/text/output/reasoning_parsers.h"
#include "easydel/text/output/tool_parsers.h"

namespace easydel::text {
namespace {

template <class Formats>
std::vector<std::string> names_of(Formats formats) {
  std::vector<std::string> out;
  for (const auto& format : formats) out.emplace_back(format.name);
  return out;
}

std::string listed(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "" : ", ") + name;
  return out;
}

const Take discard = [](std::string_view) {};

// A Markdown fence around content that must be JSON.
Task<> read_json_content(ReadContext& context) {
  Incoming& in = context.in;
  co_await skip_space(in);
  const bool fenced = co_await take_if(in, "```json");
  if (fenced) co_await skip_space(in);
  const Markers fence{"\n```", "```"}, none;
  const size_t end = co_await read_content(context, fenced ? fence : none);
  if (end != none_index) co_await read_until(in, none, discard);
}

}  // namespace

struct OutputParser::Impl {
  Incoming in;
  MessageSink sink;
  OutputOptions options;
  ToolSchemas schemas;
  const ToolFormat* tools = nullptr;
  const ReasoningFormat* reasoning = nullptr;
  ReadContext context{in, sink, schemas, options, {}, {}};
  std::optional<Task<>> reader;

  Task<> read() {
    const bool harmony = (reasoning && reasoning->harmony) || (tools && tools->read == read_harmony);
    if (harmony) {
      co_await read_harmony(context);
      co_return;
    }
    if (reasoning && options.separate_reasoning)
      co_await read_reasoning(context, *reasoning);
    else if (reasoning)
      context.noise = reasoning->noise;
    if (tools && options.parse_tools)
      co_await tools->read(context);
    else if (options.json_content)
      co_await read_json_content(context);
    const Markers none;
    co_await read_content(context, none);
  }
  void check() const {
    if (reader && reader->await_ready()) reader->await_resume();
  }
};

OutputParser::OutputParser(const OutputFormat& format, OutputOptions options) : impl_(std::make_unique<Impl>()) {
  if (!format.tools.empty() && format.tools != "none") {
    impl_->tools = find_tool_format(format.tools);
    if (!impl_->tools)
      refuse("tool parser", str("there is none called '", format.tools, "'"), listed(tool_parser_names()));
  }
  if (!format.reasoning.empty()) {
    impl_->reasoning = find_reasoning_format(format.reasoning);
    if (!impl_->reasoning)
      refuse("reasoning parser", str("there is none called '", format.reasoning, "'"),
             listed(reasoning_parser_names()));
  }
  impl_->options = std::move(options);
  impl_->sink.certain = impl_->options.certain;
  impl_->schemas = ToolSchemas(std::move(impl_->options.tools));
  impl_->reader.emplace(impl_->read());
  impl_->in.feed(impl_->options.begun);
}
OutputParser::~OutputParser() = default;
OutputParser::OutputParser(OutputParser&&) noexcept = default;

Delta OutputParser::feed(std::string_view text) {
  impl_->in.feed(text);
  impl_->check();
  return impl_->sink.take();
}

Delta OutputParser::finish() {
  impl_->in.end();
  impl_->check();
  impl_->sink.finish();
  return impl_->sink.take();
}

Message parse_output(std::string_view text, const OutputFormat& format, OutputOptions options) {
  OutputParser parser(format, std::move(options));
  Message out;
  apply(parser.feed(text), out);
  apply(parser.finish(), out);
  return out;
}

Value tool_calls_document(const std::vector<ToolCall>& calls) {
  Value out = Value::list();
  for (const ToolCall& call : calls) {
    Value function = Value::map(), one = Value::map();
    function.set("name", Value::text(call.name));
    function.set("arguments", Value::text(call.arguments));
    if (!call.id.empty()) one.set("id", Value::text(call.id));
    one.set("type", Value::text("function"));
    one.set("function", std::move(function));
    out.items.push_back(std::move(one));
  }
  return out;
}

std::vector<std::string> tool_parser_names() { return names_of(tool_formats()); }
std::vector<std::string> reasoning_parser_names() { return names_of(reasoning_formats()); }

}  // namespace easydel::text
