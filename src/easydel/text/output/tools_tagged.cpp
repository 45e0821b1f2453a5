// Reads calls whose arguments are bare text between tags.
#include <algorithm>

#include "easydel/text/output/tool_formats.h"

namespace easydel::text {
namespace {

constexpr std::string_view blanks = " \t\r\n";
constexpr size_t longest_tag = 1024, kLongestBetween = 256;

std::string_view without_blanks(std::string_view text) {
  const size_t first = text.find_first_not_of(blanks);
  return first == std::string_view::npos ? "" : text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

// The contents of a tag: a name, possibly quoted, possibly followed by `string="true"`.
struct Tag {
  std::string name;
  std::optional<bool> is_string;
};

Tag tag_of(const std::string& raw) {
  Tag out;
  const std::string text(without_blanks(raw));
  if (!text.empty() && (text[0] == '"' || text[0] == '\'')) {
    const size_t end = text.find(text[0], 1);
    out.name = text.substr(1, end == std::string::npos ? end : end - 1);
    const std::string rest = end == std::string::npos ? "" : text.substr(end + 1);
    if (rest.find("string=\"true\"") != std::string::npos) out.is_string = true;
    if (rest.find("string=\"false\"") != std::string::npos) out.is_string = false;
  } else {
    out.name = text;
  }
  return out;
}

// A value without surrounding white space, by the rules of the format.
std::string_view inner(std::string_view text, const TaggedCalls& format) {
  if (format.strips_values || format.guesses_types) return without_blanks(text);
  if (format.keeps_space) return text;
  if (text.starts_with('\n')) text.remove_prefix(1);
  if (text.ends_with('\n')) text.remove_suffix(1);
  return text;
}

bool is_null(std::string_view value, const TaggedCalls& format) {
  return std::find(format.nulls.begin(), format.nulls.end(), lowered(value)) != format.nulls.end();
}

// Reads a string value while it arrives; passes it on as soon as it is certain to be one.
class StringValue {
 public:
  StringValue(MessageSink& sink, const TaggedCalls& format) : sink_(sink), format_(format) {}

  void add(std::string_view piece) {
    held_ += piece;
    if (!begun_) {
      const bool blank = held_.find_first_not_of(blanks) == std::string::npos;
      if ((blank && !format_.keeps_space) || may_be_null()) return;
      begin();
    }
    // Holds trailing white space back: it may be at the end of the value.
    const size_t solid = format_.keeps_space ? held_.size() : held_.find_last_not_of(blanks) + 1;
    write(std::string_view(held_).substr(0, solid));
    held_.erase(0, solid);
  }
  void end() {
    if (!begun_ && is_null(inner(held_, format_), format_)) return sink_.arguments("null");
    if (!begun_) begin();
    if (format_.strips_values) held_.erase(held_.find_last_not_of(blanks) + 1);
    if (!format_.keeps_space && held_.ends_with('\n')) held_.pop_back();
    write(held_);
    sink_.arguments("\"");
  }

 private:
  void begin() {
    begun_ = true;
    sink_.arguments("\"");
    if (format_.strips_values)
      held_.erase(0, held_.find_first_not_of(blanks));
    else if (!format_.keeps_space && held_.starts_with('\n'))
      held_.erase(0, 1);
  }
  bool may_be_null() const {
    const std::string_view value = inner(held_, format_);
    const std::string lower = lowered(value);
    return std::any_of(format_.nulls.begin(), format_.nulls.end(),
                       [&](std::string_view word) { return word.starts_with(lower) && value.size() <= word.size(); });
  }
  void write(std::string_view piece) {
    std::string out;
    append_json_escaped(out, piece);
    sink_.arguments(out);
  }
  MessageSink& sink_;
  const TaggedCalls& format_;
  std::string held_;
  bool begun_ = false;
};

struct TaggedCall {
  std::string name;
  std::vector<std::string> seen;
};

Task<bool> read_parameter(ReadContext& context, const TaggedCalls& format, TaggedCall& call) {
  Incoming& in = context.in;
  std::string raw;
  const Markers name_end{format.parameter_name_end};
  const size_t named = co_await read_until(in, name_end, raw, longest_tag);
  if (named == none_index) co_return false;
  in.take(format.parameter_name_end.size());
  const Tag tag = tag_of(raw);
  if (tag.name.empty()) co_return false;
  if (!format.value_open.empty()) {
    co_await skip_space(in);
    const bool opened = co_await take_if(in, format.value_open);
    if (!opened) co_return false;
  }
  // A value without an end marker ends where the next element begins.
  const Markers ends{format.value_close, format.parameter, format.close};
  const bool again = std::find(call.seen.begin(), call.seen.end(), tag.name) != call.seen.end();
  ArgumentType type = context.schemas.type_of(call.name, tag.name);
  bool guesses = format.guesses_types;
  if (tag.is_string && type.unknown()) type.string = *tag.is_string, guesses = true;
  // All arguments are in one parameter that the tool does not have.
  const bool wraps = call.seen.empty() && (tag.name == "arguments" || tag.name == "input") &&
                     context.schemas.knows(call.name) && !context.schemas.property(call.name, tag.name);
  if (!again && !wraps) {
    context.sink.arguments((call.seen.empty() ? "" : ", ") + json_quoted(tag.name) + ": ");
    call.seen.push_back(tag.name);
  }
  size_t end = none_index;
  if (!again && !wraps && (type.only_string() || (type.unknown() && !guesses))) {
    StringValue value(context.sink, format);
    const Take take = [&value](std::string_view piece) { value.add(piece); };
    end = co_await read_until(in, ends, take);
    if (end == none_index) co_return false;
    value.end();
  } else {
    std::string text;
    const Take take = [&text](std::string_view piece) { text += piece; };
    end = co_await read_until(in, ends, take);
    if (end == none_index) co_return false;
    text = inner(text, format);
    std::optional<std::string> object;
    if (wraps) object = value_as_json(text, Notation::json);
    if (object && object->front() == '{') {
      context.sink.arguments(std::string_view(*object).substr(1, object->size() - 2));
      if (object->size() > 2) call.seen.push_back(tag.name);
    } else if (!again) {
      if (wraps) {
        context.sink.arguments(json_quoted(tag.name) + ": ");
        call.seen.push_back(tag.name);
      }
      context.sink.arguments(is_null(text, format) ? "null" : coerced(text, type, guesses));
    }
  }
  if (end == 0) in.take(format.value_close.size());
  co_return true;
}

// Reads one call, starting after `open`.
Task<bool> read_tagged_call(ReadContext& context, const TaggedCalls& format) {
  Incoming& in = context.in;
  co_await skip_space(in);
  TaggedCall call;
  std::string raw;
  const Markers name_ends{format.name_end, format.parameter, format.close};
  const size_t end = co_await read_until(in, name_ends, raw, longest_tag);
  if (end == none_index || (end != 0 && !format.open.empty())) co_return false;
  if (end == 0) in.take(format.name_end.size());
  call.name = tag_of(raw).name;
  if (call.name.empty() || call.name.find_first_of("<>\n{}") != std::string::npos) co_return false;
  context.sink.begin_call(call.name);
  context.sink.arguments("{");
  Markers next{format.parameter, format.close};
  next.insert(next.end(), format.section_ends.begin(), format.section_ends.end());
  while (true) {
    std::string between;
    const size_t what = co_await read_until(in, next, between, kLongestBetween);
    if (what == none_index) co_return false;
    if (what != 0) {
      if (what == 1) in.take(format.close.size());
      context.sink.arguments("}");
      context.sink.end_call();
      co_return true;
    }
    in.take(format.parameter.size());
    const bool good = co_await read_parameter(context, format, call);
    if (!good) co_return false;
  }
}

// Reads the calls of a section.
Task<bool> read_section(ReadContext& context, const TaggedCalls& format) {
  Incoming& in = context.in;
  if (format.open.empty()) co_return co_await read_tagged_call(context, format);
  Markers next{format.open};
  next.insert(next.end(), format.section_ends.begin(), format.section_ends.end());
  bool any = false;
  while (true) {
    std::string between;  // "function<sep>", line breaks
    const size_t what = co_await read_until(in, next, between, kLongestBetween);
    if (what != 0) {
      if (what != none_index) in.take(next[what].size());
      co_return any;
    }
    in.take(format.open.size());
    const bool good = co_await read_tagged_call(context, format);
    if (!good) co_return false;
    any = true;
    in.mark();
    co_await skip_space(in);
    const size_t follows = co_await next_is(in, next);
    if (follows == 0) continue;
    if (follows != none_index) in.take(next[follows].size());
    co_return true;
  }
}

}  // namespace

Task<> read_tagged_calls(ReadContext& context, const TaggedCalls& format) {
  Incoming& in = context.in;
  Markers stops = format.sections;
  if (!format.needs_section) stops.push_back(format.open);
  while (true) {
    const size_t stop = co_await read_content(context, stops);
    if (stop == none_index) co_return;
    in.mark();
    in.take(stops[stop].size());
    const bool section = stop < format.sections.size();
    bool good = false;
    if (section)
      good = co_await read_section(context, format);
    else
      good = co_await read_tagged_call(context, format);
    if (!good) {
      context.sink.withdraw_call();
      context.sink.content(in.since_mark());
    }
    in.forget_mark();
  }
}

}  // namespace easydel::text
