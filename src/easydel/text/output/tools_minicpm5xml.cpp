// MiniCPM's XML: <function name="f"><param name="a">1</param></function>. The format is checked against the schemas,
// so a call is returned only when it is complete.
#include <algorithm>
#include <map>
#include <utility>

#include "easydel/base/error.h"
#include "easydel/text/output/tool_formats.h"

namespace easydel::text {
namespace {

constexpr std::string_view xml_space = " \t\r\n";

// Some programs hand over tokens of byte-level vocabularies that were not decoded: "Ġ" is a blank, "Ċ" a line break.
// Such a text has no blank of its own, and a text with one means these letters.
bool has_blank(std::string_view text) { return text.find_first_of(xml_space) != std::string_view::npos; }

std::string decoded(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    const std::string_view rest = text.substr(i);
    const bool blank = rest.starts_with("Ġ"), line = rest.starts_with("Ċ");
    if (blank || line) {
      out += blank ? ' ' : '\n';
      i += 2;
    } else {
      out += text[i++];
    }
  }
  return out;
}

// Content of an answer. From the first of those letters on it is held back until a blank or the end shows what they
// mean.
class Content {
 public:
  explicit Content(MessageSink& sink) : sink_(sink) {}
  void add(std::string_view piece, bool may_be_blank = false) {
    if (!has_blanks_ && has_blank(piece)) keep();
    if (has_blanks_ || (held_.empty() && !may_be_blank))
      sink_.content(piece);
    else
      held_ += piece;
  }
  // What came means what it says.
  void keep() {
    has_blanks_ = true;
    release(std::exchange(held_, {}));
  }
  void decode() { release(decoded(std::exchange(held_, {}))); }

 private:
  void release(const std::string& text) {
    if (!text.empty()) sink_.content(text);
  }
  MessageSink& sink_;
  std::string held_;
  bool has_blanks_ = false;
};

// The quoted text after name=; nullopt: none.
std::optional<std::string> name_in(std::string_view tag) {
  const size_t at = tag.find("name=");
  if (at == std::string_view::npos || at + 6 >= tag.size()) return std::nullopt;
  const char quote = tag[at + 5];
  const size_t end = tag.find(quote, at + 6);
  if ((quote != '"' && quote != '\'') || end == std::string_view::npos) return std::nullopt;
  return std::string(tag.substr(at + 6, end - at - 6));
}

// The text of an element: CDATA unchanged, white space around it trimmed, the five entities decoded.
std::string text_of(std::string_view raw) {
  const size_t open = raw.find("<![CDATA["), close = raw.rfind("]]>");
  if (open != std::string_view::npos && close != std::string_view::npos && open < close)
    return std::string(raw.substr(open + 9, close - open - 9));
  const size_t first = raw.find_first_not_of(xml_space);
  if (first == std::string_view::npos) return "";
  raw = raw.substr(first, raw.find_last_not_of(xml_space) - first + 1);
  std::string out;
  constexpr std::pair<std::string_view, char> entities[] = {
      {"&lt;", '<'}, {"&gt;", '>'}, {"&amp;", '&'}, {"&quot;", '"'}, {"&apos;", '\''}};
  for (size_t i = 0; i < raw.size();) {
    const auto* entity = std::find_if(std::begin(entities), std::end(entities),
                                      [&](const auto& each) { return raw.substr(i).starts_with(each.first); });
    const bool found = entity != std::end(entities);
    out += found ? entity->second : raw[i];
    i += found ? entity->first.size() : 1;
  }
  return out;
}

using Parameters = std::vector<std::pair<std::string, std::string>>;

// The parameters of a body; nullopt: it contains something else.
std::optional<Parameters> parameters_of(std::string_view body) {
  Parameters out;
  while (true) {
    const size_t at = body.find_first_not_of(xml_space);
    if (at == std::string_view::npos) return out;
    body.remove_prefix(at);
    if (!body.starts_with("<param")) return std::nullopt;
    const size_t tag = body.find('>');
    if (tag == std::string_view::npos) return std::nullopt;
    const std::optional<std::string> name = name_in(body.substr(0, tag));
    const std::string_view rest = body.substr(tag + 1);
    const size_t cdata = rest.find("<![CDATA["), cdata_end = rest.find("]]>");
    size_t end = rest.find("</param>");
    if (cdata < end && cdata_end != std::string_view::npos) end = rest.find("</param>", cdata_end);
    if (!name || name->empty() || end == std::string_view::npos) return std::nullopt;
    for (const auto& each : out)
      if (each.first == *name) return std::nullopt;
    out.emplace_back(*name, text_of(rest.substr(0, end)));
    body = rest.substr(end + 8);
  }
}

struct Call {
  std::string name;
  std::vector<std::pair<std::string, std::string>> arguments;  // name and JSON
};

// Unpacks a single parameter that holds all arguments as an object.
Parameters unwrapped(const ToolSchemas& schemas, const std::string& tool, Parameters parameters) {
  if (parameters.size() != 1 || (parameters[0].first != "properties" && parameters[0].first != "arguments"))
    return parameters;
  if (!schemas.type_of(tool, parameters[0].first).unknown()) return parameters;
  std::optional<std::string> json = value_as_json(parameters[0].second, Notation::json);
  if (!json) json = value_as_json(parameters[0].second, Notation::python);
  if (!json || json->front() != '{') return parameters;
  Parameters out;
  try {
    for (const auto& [name, value] : parse_json(*json).entries)
      out.emplace_back(name, value.is_text() ? value.scalar : to_json(value));
  } catch (const UserError&) {
    return parameters;
  }
  return out;
}

// Tool names that these models were trained on, mapped to the offered tool: the name, the name of a parameter, and the
// argument that the name implies.
struct Alias {
  std::string_view tool;
  std::vector<std::pair<std::string_view, std::string_view>> renamed;
  std::vector<std::pair<std::string_view, std::string_view>> implied;
};
const std::map<std::string, Alias, std::less<>>& aliases() {
  static const std::map<std::string, Alias, std::less<>> table{
      {"get_details_by_phone", {"get_customer_by_phone", {}, {}}},
      {"get_line_details", {"get_details_by_id", {{"line_id", "id"}}, {}}},
      {"enable_roaming", {"toggle_roaming", {}, {{"enabled", "true"}}}},
      {"disable_roaming", {"toggle_roaming", {}, {{"enabled", "false"}}}},
  };
  return table;
}

std::optional<Call> checked(const ToolSchemas& schemas, std::string name, Parameters parameters) {
  if (!schemas.empty() && !schemas.knows(name)) {
    const auto alias = aliases().find(name);
    if (alias == aliases().end() || !schemas.knows(alias->second.tool)) return std::nullopt;
    name = alias->second.tool;
    for (auto& [parameter, text] : parameters)
      for (const auto& [from, to] : alias->second.renamed)
        if (parameter == from) parameter = to;
    for (const auto& [parameter, text] : alias->second.implied) parameters.emplace_back(parameter, text);
  }
  Call out{name, {}};
  parameters = unwrapped(schemas, name, std::move(parameters));
  const Value* schema = schemas.parameters(name);
  const Value* properties = schema ? schema->find("properties") : nullptr;
  for (const auto& [parameter, text] : parameters)
    if (!properties || !properties->is_map() || properties->find(parameter))
      out.arguments.emplace_back(parameter, coerced(text, schemas.type_of(name, parameter), schemas.empty()));
  const Value* required = schema ? schema->find("required") : nullptr;
  for (const Value& each : required ? required->items : std::vector<Value>{}) {
    const bool there =
        std::any_of(out.arguments.begin(), out.arguments.end(), [&](const auto& a) { return a.first == each.scalar; });
    if (!there) return std::nullopt;
  }
  return out;
}

std::optional<Call> call_of(const ToolSchemas& schemas, const std::string& raw) {
  const size_t tag = raw.find('>'), end = raw.rfind("</function>");
  const std::optional<std::string> name = name_in(std::string_view(raw).substr(0, tag));
  if (!name || name->empty()) return std::nullopt;
  std::optional<Parameters> parameters = parameters_of(std::string_view(raw).substr(tag + 1, end - tag - 1));
  if (!parameters) return std::nullopt;
  return checked(schemas, *name, std::move(*parameters));
}

}  // namespace

Task<> read_minicpm_calls(ReadContext& context) {
  Incoming& in = context.in;
  context.sink.content_excludes_calls = true;
  Content content(context.sink);
  const Take take_content = [&content](std::string_view piece) { content.add(piece); };
  const Markers stops{"Ġ", "Ċ", "<function name=", "<functionname=", "<functionĠname="},
      ends{"</function>", "<![CDATA["}, cdata_end{"]]>"};
  while (true) {
    const size_t stop = co_await read_until(in, stops, take_content);
    if (stop == none_index) {
      content.decode();
      co_return;
    }
    if (stop < 2) {
      in.take(stops[stop].size());
      content.add(stops[stop], true);
      continue;
    }
    in.mark();
    std::string raw;
    const Take take = [&raw](std::string_view piece) { raw += piece; };
    size_t end = co_await read_until(in, ends, take);
    while (end == 1) {
      const size_t closed = co_await read_until(in, cdata_end, take);
      if (closed == none_index) break;
      end = co_await read_until(in, ends, take);
    }
    if (end == 0) in.take(ends[0].size());
    std::string whole(in.since_mark());
    in.forget_mark();
    if (has_blank(whole)) {
      content.keep();
    } else {
      content.decode();
      whole = decoded(whole);
    }
    const std::optional<Call> call = end == 0 ? call_of(context.schemas, whole) : std::nullopt;
    if (!call) {
      context.sink.content(whole);
      continue;
    }
    context.sink.begin_call(call->name);
    std::string arguments;
    for (const auto& [name, json] : call->arguments)
      arguments += (arguments.empty() ? "" : ", ") + json_quoted(name) + ": " + json;
    context.sink.arguments("{" + arguments + "}");
    context.sink.end_call();
  }
}

}  // namespace easydel::text
