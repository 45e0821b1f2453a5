#include "easydel/text/output/answer_language.h"

#include <algorithm>
#include <cctype>

#include "easydel/base/error.h"
#include "easydel/base/json_text.h"
#include "easydel/text/output/call_shapes.h"
#include "easydel/text/output/reasoning_parsers.h"
#include "easydel/text/output/tool_parsers.h"
#include "easydel/text/output/tool_schema.h"

namespace easydel::text {
namespace {

using constrain::Language;
using Pieces = CallShape::Pieces;

constexpr int64_t max_numbered_calls = 16;

const Value& function_of(const Value& tool) {
  const Value* const inner = tool.find("function");
  return inner && inner->is_map() ? *inner : tool;
}

bool is_strict(const Value& tool) {
  const Value* const strict = function_of(tool).find("strict");
  return strict && strict->as_bool().value_or(false);
}

// The arguments are an object whatever the schema says.
Language arguments_of(const Value& tool, bool by_schema) {
  const Value* const parameters = function_of(tool).find("parameters");
  if (!by_schema || !parameters || !parameters->is_map()) return {.kind = Language::Kind::json_object};
  Value schema = *parameters;
  if (!schema.find("type")) schema.set("type", Value::text("object"));
  return {.kind = Language::Kind::json_schema, .source = to_json(schema)};
}

// As arguments_of, in a format's own notation.
Language arguments_in(const constrain::ArgumentNotation& notation, const Value& tool, bool by_schema) {
  Language out = arguments_of(tool, by_schema);
  by_schema = out.kind == Language::Kind::json_schema;
  if (!by_schema) out.source = R"({"type": "object"})";
  out.kind = Language::Kind::arguments;
  out.notation = notation;
  out.notation.any_text = !by_schema;
  Value list = Value::list();
  list.items.push_back(tool);
  const ToolSchemas schemas(std::move(list));
  const std::string name = schemas.name(0);
  const Value* const parameters = schemas.parameters(name);
  const Value* const properties = by_schema && parameters ? parameters->find("properties") : nullptr;
  if (!properties) return out;
  for (const auto& [parameter, schema] : properties->entries)
    if (const ArgumentType type = schemas.type_of(name, parameter); !type.unknown())
      out.notation.types.emplace_back(parameter, type);
  return out;
}

void append(std::vector<Language>& to, const Pieces& pieces) {
  for (const std::string_view piece : pieces) to.push_back(Language::marker(std::string(piece)));
}

class Calls {
 public:
  Calls(const CallShape& shape, const AnswerRules& rules) : shape_(shape), rules_(rules) {}

  // The first marker, and what follows it.
  std::string first_marker() const {
    const Pieces& first = shape_.open.empty() ? shape_.before_name : shape_.open;
    return std::string(first.front());
  }
  // Whether readers tell the calls from other text by a marker.
  bool has_marker() const {
    const std::string first = first_marker();
    return first.find_first_of("{[") != 0 || first.starts_with("[TOOL_CALLS]");
  }
  // All markers have one of these, which JSON strings can write in another way.
  std::string_view marker_characters() const {
    return has_marker() && first_marker().find('<') != std::string::npos ? "<" : "<[`";
  }
  Language after_first_marker() const {
    Language out = all();
    // all() begins with `open`, or with a list whose first call begins with `before_name`.
    if (!shape_.open.empty()) {
      out.parts.erase(out.parts.begin());
      return out;
    }
    std::vector<Language> parts = {one(0, 1)};
    if (several()) {
      Language more{.kind = Language::Kind::repeat, .parts = {joined_call()}};
      parts.push_back(std::move(more));
    }
    append(parts, shape_.close);
    return Language::sequence(std::move(parts));
  }
  Language all() const {
    std::vector<Language> parts;
    append(parts, shape_.open);
    if (shape_.numbered && several()) {
      parts.push_back(numbered(0));
    } else {
      parts.push_back(one(0, 0));
      if (several()) parts.push_back({.kind = Language::Kind::repeat, .parts = {joined_call()}});
    }
    append(parts, shape_.close);
    return Language::sequence(std::move(parts));
  }

 private:
  static void check_bare(const std::string& name) {
    const auto is_allowed = [](unsigned char c) {
      return std::isalnum(c) || c >= 0x80 || c == '_' || c == '-' || c == '.';
    };
    if (name.empty() || !std::ranges::all_of(name, is_allowed))
      refuse("tools", "the name '" + name + "' cannot be written in the model's format of calls",
             "use letters, digits, '_', '-' and '.'");
  }
  bool several() const { return shape_.several && rules_.parallel; }

  // Call number `number` without the first `skipped` pieces before its name.
  Language one(int64_t number, size_t skipped) const {
    std::vector<Language> any;
    for (const Value* const tool : rules_.tools) {
      const Value* const name = function_of(*tool).find("name");
      std::string spelled = name ? name->scalar : "";
      if (shape_.arguments) {
        check_bare(spelled);
      } else if (shape_.before_name.back().ends_with('"')) {  // in a JSON string
        spelled = json_text(spelled);
        spelled = spelled.substr(1, spelled.size() - 2);
      }
      if (shape_.numbered) spelled += str(":", number);
      std::vector<Language> call = {Language::marker(spelled)};
      append(call, shape_.after_name);
      const bool by_schema = rules_.required || is_strict(*tool);
      call.push_back(shape_.arguments ? arguments_in(*shape_.arguments, *tool, by_schema)
                                      : arguments_of(*tool, by_schema));
      any.push_back(Language::sequence(std::move(call)));
    }
    std::vector<Language> parts;
    append(parts, Pieces(shape_.before_name.begin() + int64_t(skipped), shape_.before_name.end()));
    parts.push_back(Language::any_of(std::move(any)));
    append(parts, shape_.after_arguments);
    return Language::sequence(std::move(parts));
  }
  Language joined_call() const {
    std::vector<Language> parts;
    append(parts, shape_.between);
    parts.push_back(one(0, 0));
    return Language::sequence(std::move(parts));
  }
  Language numbered(int64_t number) const {
    std::vector<Language> parts = {one(number, 0)};
    if (number + 1 < max_numbered_calls)
      parts.push_back({.kind = Language::Kind::repeat, .parts = {numbered(number + 1)}, .max = 1});
    return Language::sequence(std::move(parts));
  }

  const CallShape& shape_;
  const AnswerRules& rules_;
};

bool is_json(const Language& language) {
  return language.kind == Language::Kind::json_schema || language.kind == Language::Kind::json_object;
}

// Content in which readers find nothing else.
Language plain_content(Language content, std::string_view marker_characters) {
  if (is_json(content)) content.escaped = marker_characters;
  return content;
}

// Content, calls, or content with calls after it. What stands after a call is no content for any format's reader.
Language content_or_calls(const Language& content, const Calls& calls) {
  const Language plain = plain_content(content, calls.marker_characters());
  if (!is_json(content) || !calls.has_marker()) return Language::any_of({plain, calls.all()});
  const Language blanks{.kind = Language::Kind::regex, .source = "[ \\n]{0,2}"};
  Language more{
      .kind = Language::Kind::repeat, .parts = {Language::sequence({blanks, calls.all()})}, .min = 0, .max = 1};
  return Language::any_of({Language::sequence({plain, std::move(more)}), calls.all()});
}

// An answer in harmony's channels: reasoning, if there is any, then one call or the content.
Language in_channels(const AnswerRules& rules) {
  const auto message_in = [](std::string channel, Language text) {
    return Language::sequence({Language::marker(std::move(channel)), Language::marker("<|message|>"), std::move(text)});
  };
  std::vector<Language> messages;
  if (!rules.tools.empty()) {
    std::vector<Language> any;
    for (const Value* const tool : rules.tools) {
      const Value* const name = function_of(*tool).find("name");
      any.push_back(
          Language::sequence({Language::marker((name ? name->scalar : "") + " "), Language::marker("<|constrain|>"),
                              message_in("json", arguments_of(*tool, rules.required || is_strict(*tool)))}));
    }
    messages.push_back(
        Language::sequence({Language::marker("commentary to=functions."), Language::any_of(std::move(any))}));
  }
  const Language any_text{.kind = Language::Kind::regex, .source = "[\\s\\S]*"};
  if (!rules.required)
    messages.push_back(message_in("final", rules.content ? plain_content(*rules.content, "<") : any_text));
  const auto in_channel = [](std::vector<Language> any) {
    return Language::sequence({Language::marker("<|channel|>"), Language::any_of(std::move(any))});
  };
  const Language last = in_channel(messages);
  messages.push_back(message_in(
      "analysis", Language::free_until("<|end|>", Language::sequence({Language::marker("<|start|>"),
                                                                      Language::marker("assistant"), last}))));
  return in_channel(std::move(messages));
}

const ReasoningFormat* reasoning_of(const OutputFormat& format) {
  const ReasoningFormat* const out = format.reasoning.empty() ? nullptr : find_reasoning_format(format.reasoning);
  return out && (out->harmony || !out->closes.empty()) ? out : nullptr;
}

// Whether an answer begins inside its reasoning, may begin it, or has none.
enum class Beginning { inside, may_begin, without };
Beginning beginning_of(const ReasoningFormat& format, const std::string& begun, OutputOptions::Thinking thinking) {
  using Thinking = OutputOptions::Thinking;
  using Start = ReasoningFormat::Start;
  const auto has = [&](const Markers& markers) {
    return std::ranges::any_of(markers, [&](const std::string& m) { return begun.find(m) != std::string::npos; });
  };
  if (has(format.closes)) return Beginning::without;  // the prompt has ended it
  const bool implicit = thinking != Thinking::off &&
                        (format.start == Start::implicit || (format.start == Start::asked && thinking == Thinking::on));
  if (has(format.opens) || implicit) return Beginning::inside;
  if (!format.prompt.empty() && begun.find(format.prompt) != std::string::npos) return Beginning::inside;
  return thinking == Thinking::off || format.opens.empty() ? Beginning::without : Beginning::may_begin;
}

// `answer` after the reasoning that the format begins with, if it does.
Language after_reasoning(Language answer, const OutputFormat& format, const AnswerRules& rules) {
  const ReasoningFormat* const reasoning = reasoning_of(format);
  if (!reasoning) return answer;
  const Beginning beginning = beginning_of(*reasoning, rules.begun, rules.thinking);
  if (beginning == Beginning::without) return answer;
  const Language blanks{.kind = Language::Kind::regex, .source = "[ \\n]{0,4}"};
  Language reasoned{.kind = Language::Kind::free_text, .min = 1, .ends_text = true};
  for (const std::string& close : reasoning->closes) {
    reasoned.choices.push_back(close);
    reasoned.parts.push_back(Language::sequence({blanks, answer}));
  }
  if (beginning == Beginning::inside) return reasoned;
  std::vector<Language> ways = {answer};
  for (const std::string& open : reasoning->opens)
    ways.push_back(Language::sequence({Language::marker(open), reasoned}));
  return Language::any_of(std::move(ways));
}

}  // namespace

std::optional<ReasoningEnd> reasoning_end(const OutputFormat& format, const std::string& begun,
                                          OutputOptions::Thinking thinking) {
  const ReasoningFormat* const reasoning = reasoning_of(format);
  if (!reasoning) return std::nullopt;
  if (reasoning->harmony)
    refuse("thinking_budget", "answers in channels ('" + format.reasoning + "') cannot be cut there",
           "use reasoning_effort");
  const Beginning beginning = beginning_of(*reasoning, begun, thinking);
  if (beginning == Beginning::without) return std::nullopt;
  ReasoningEnd out{.close = reasoning->closes.front()};
  if (beginning == Beginning::may_begin) out.opens = reasoning->opens;
  return out;
}

ReasoningWatch::ReasoningWatch(const OutputFormat& format, const std::string& begun, OutputOptions::Thinking thinking) {
  const ReasoningFormat* const reasoning = reasoning_of(format);
  if (!reasoning) return;
  if (reasoning->harmony) {
    again_ = true, state_ = State::may_begin;
    opens_ = {"<|channel|>analysis"}, closes_ = {"<|end|>", "<|start|>", "<|channel|>"};
    push(begun);
    return;
  }
  opens_.assign(reasoning->opens.begin(), reasoning->opens.end());
  closes_.assign(reasoning->closes.begin(), reasoning->closes.end());
  closes_.insert(closes_.end(), reasoning->calls.begin(), reasoning->calls.end());
  const Beginning beginning = beginning_of(*reasoning, begun, thinking);
  state_ = beginning == Beginning::inside      ? State::inside
           : beginning == Beginning::may_begin ? State::may_begin
                                               : State::over;
}

// Whether the answer begins with reasoning, as far as it can be told.
bool ReasoningWatch::begins() {
  const size_t start = std::min(text_.find_first_not_of(" \n\r\t"), text_.size());
  const std::string_view rest = std::string_view(text_).substr(start);
  size_t length = 0;
  bool open = false;  // it may still become a marker
  for (const std::string_view marker : opens_) {
    if (rest.starts_with(marker)) length = std::max(length, marker.size());
    open |= marker.starts_with(rest);
  }
  if (length > 0)
    state_ = State::inside, text_.erase(0, start + length);
  else if (!open)
    state_ = State::over;
  return length > 0;
}

bool ReasoningWatch::push(std::string_view piece) {
  if (state_ == State::over) return false;
  text_ += piece;
  if (state_ == State::may_begin && !again_ && !begins()) return false;
  while (true) {
    const auto& markers = state_ == State::inside ? closes_ : opens_;
    size_t first = std::string::npos, length = 0, longest = 0;
    for (const std::string_view marker : markers) {
      if (const size_t at = text_.find(marker); at < first) first = at, length = marker.size();
      longest = std::max(longest, marker.size());
    }
    if (first == std::string::npos) {
      text_.erase(0, text_.size() - std::min(text_.size(), longest - 1));
      return state_ == State::inside;
    }
    const bool was_inside = state_ == State::inside;
    state_ = !was_inside ? State::inside : again_ ? State::may_begin : State::over;
    // The marker that ends a channel may begin the next one.
    text_.erase(0, was_inside && again_ ? first : first + length);
    if (state_ == State::over) return false;
  }
}

std::optional<constrain::Language> answer_language(const OutputFormat& format, const AnswerRules& rules) {
  const bool strict = std::ranges::any_of(rules.tools, [](const Value* tool) { return is_strict(*tool); });
  const bool calls_matter = rules.required || strict || rules.restricted || (rules.content && !rules.tools.empty());
  if (!calls_matter && !rules.content) return std::nullopt;
  const ReasoningFormat* const reasoning = reasoning_of(format);
  if (reasoning && reasoning->harmony) return in_channels(rules);
  if (!calls_matter) return after_reasoning(*rules.content, format, rules);
  const CallShape* const shape = find_call_shape(format.tools);
  if (!shape)
    refuse("tool_choice",
           format.tools.empty() ? "the model has no format of calls"
                                : "calls in the format '" + format.tools + "' cannot be constrained",
           "use tool_choice auto without strict and response_format");
  const Calls calls(*shape, rules);
  if (rules.required) return after_reasoning(calls.all(), format, rules);
  if (rules.content) return after_reasoning(content_or_calls(*rules.content, calls), format, rules);
  if (!calls.has_marker())
    refuse("tools",
           "calls in the format '" + format.tools +
               "' have no marker, so strict cannot hold with tool_choice "
               "auto",
           "use tool_choice required, or leave strict out");
  // Reasoning is free text like the rest.
  return Language{
      .kind = Language::Kind::free_text, .choices = {calls.first_marker()}, .parts = {calls.after_first_marker()}};
}

}  // namespace easydel::text
