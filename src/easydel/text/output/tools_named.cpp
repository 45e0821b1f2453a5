// Reads calls that are a name between markers and a JSON object.
#include <algorithm>

#include "easydel/base/error.h"
#include "easydel/text/output/tool_formats.h"

namespace easydel::text {
namespace {

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

// functions.get_weather:0 -> get_weather; "": no index after a colon.
std::string name_of_indexed(std::string_view id) {
  const size_t colon = id.rfind(':');
  if (colon == std::string_view::npos || !is_number(id.substr(colon + 1))) return "";
  std::string_view name = id.substr(0, colon);
  if (const size_t dot = name.rfind('.'); dot != std::string_view::npos) name.remove_prefix(dot + 1);
  return std::string(name);
}

// The only tool that accepts all of these arguments; "": none or several do.
std::string tool_that_takes(const ToolSchemas& schemas, const std::string& arguments) {
  std::string found;
  Value given;
  try {
    given = parse_json(arguments, "arguments");
  } catch (const UserError&) {  // a duplicate key
    return "";
  }
  for (size_t i = 0; i < schemas.size(); ++i) {
    const std::string name = schemas.name(i);
    const bool all = std::all_of(given.entries.begin(), given.entries.end(),
                                 [&](const auto& argument) { return schemas.property(name, argument.first); });
    if (!all) continue;
    if (!found.empty()) return "";
    found = name;
  }
  return found;
}

// A name alone is an unfinished call; anything else is content.
std::string without_marker(std::string text) {
  text.erase(0, text.find_first_not_of(" \t\r\n"));
  const bool name = text.find_first_of(" \t\r\n{}[]()<>\"',;") == std::string::npos;
  return name ? "" : text;
}

// A call with only an index: its tool is the one that accepts its arguments.
Task<bool> read_counted_call(ReadContext& context, const std::string& id) {
  std::string arguments;
  const Take take = [&arguments](std::string_view piece) { arguments += piece; };
  co_await skip_space(context.in);
  const bool good = co_await read_value(context.in, Notation::json, take);
  if (!good || arguments[0] != '{') co_return false;
  const std::string name = tool_that_takes(context.schemas, arguments);
  if (name.empty()) co_return false;
  context.sink.begin_call(name, id);
  context.sink.arguments(arguments);
  context.sink.end_call();
  co_return true;
}

Task<bool> read_named_call(ReadContext& context, const NamedCalls& format) {
  Incoming& in = context.in;
  co_await skip_space(in);
  if (!format.before_name.empty()) {
    std::string type;
    const Markers before{format.before_name, "{"};
    const size_t found = co_await read_until(in, before, type, 64);
    if (found != 0) co_return false;
    in.take(format.before_name.size());
  }
  std::string name, id;
  size_t end = co_await read_until(in, format.name_ends, name, 512);
  if (end == none_index) co_return false;
  const auto trim = [](std::string& text) {
    text.erase(0, text.find_first_not_of(" \t\r\n"));
    text.erase(text.find_last_not_of(" \t\r\n") + 1);
  };
  trim(name);
  if (name.empty() || name.find_first_of(" \t\r\n<>\"") != std::string::npos) co_return false;
  if (format.name_ends[end] != "{") in.take(format.name_ends[end].size());
  if (!format.id_open.empty() && format.name_ends[end] == format.id_open) {
    end = co_await read_until(in, format.name_ends, id, 256);
    if (end == none_index) co_return false;
    if (format.name_ends[end] != "{") in.take(format.name_ends[end].size());
    trim(id);
  }
  if (format.indexed_names) {
    id = name;
    const bool counted = is_number(id);
    if (counted && context.schemas.size() > 1) co_return co_await read_counted_call(context, id);
    name = counted && !context.schemas.empty() ? context.schemas.name(0) : name_of_indexed(id);
    if (name.empty()) co_return false;
  }
  co_await skip_space(in);
  if (!format.fence.empty()) {
    const bool fenced = co_await take_if(in, format.fence);
    if (fenced) co_await skip_space(in);
  }
  const bool more = co_await in.need(1);
  if (!more || in.remaining()[0] != '{') co_return false;
  context.sink.begin_call(std::move(name), std::move(id));
  const Take take = [&context](std::string_view piece) { context.sink.arguments(piece); };
  const bool good = co_await read_value(in, Notation::json, take);
  if (!good) {
    const bool closes = !format.close.empty() && in.remaining().starts_with(format.close.substr(0, 1));
    const int next = co_await in.peek();
    if (!format.keeps_unfinished || (next >= 0 && !closes)) co_return false;
  }
  context.sink.end_call();
  co_await skip_space(in);
  if (!format.fence.empty()) {
    const bool fenced = co_await take_if(in, "```");
    if (fenced) co_await skip_space(in);
  }
  if (!format.close.empty()) {
    const bool closed = co_await take_if(in, format.close);
    static_cast<void>(closed);
  }
  co_return true;
}

}  // namespace

Task<> read_named_calls(ReadContext& context, const NamedCalls& format) {
  Incoming& in = context.in;
  context.noise.insert(context.noise.end(), format.sections.begin(), format.sections.end());
  const Markers stops{format.open};
  while (true) {
    const size_t stop = co_await read_content(context, stops);
    if (stop == none_index) co_return;
    in.mark();
    in.take(format.open.size());
    co_await skip_space(in);
    const bool more = co_await in.need(1);
    bool good = false;
    if (format.list_too && more && (in.remaining()[0] == '[' || in.remaining()[0] == '{')) {
      const JsonCalls list;
      good = co_await read_json_call_list(context, list);
    } else {
      good = co_await read_named_call(context, format);
    }
    if (!good) {
      context.sink.withdraw_call();
      // After complete calls of a list, the marker is not part of the text that becomes content.
      const std::string back = in.since_mark();
      const bool marked = format.forgets_marker && back.starts_with(format.open);
      context.sink.content(marked ? without_marker(back.substr(format.open.size())) : back);
    }
    in.forget_mark();
  }
}

}  // namespace easydel::text
