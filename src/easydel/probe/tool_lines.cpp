// Converts lines of `probe tools` to parsed answers.
#include "easydel/probe/tool_lines.h"

#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "easydel/text/output/tool_parsers.h"
#include "easydel/text/unicode.h"

namespace easydel::probe {
namespace {

bool is_true(const Value& options, std::string_view key) {
  const Value* value = options.find(key);
  return value && value->as_bool() == true;
}

std::string word(const Value& options, std::string_view key) {
  const Value* value = options.find(key);
  return value ? value->scalar : "";
}

// The prompt of a conversation with these options, which may contain the beginning of the answer; "": the template
// refuses it.
std::string prompt_of(const text::ChatTemplate& source, const Value& tools, const Value& options) {
  Value message = Value::map();
  message.set("role", Value::text("user"));
  message.set("content", Value::text("Hello"));
  Value context = Value::map(), messages = Value::list();
  messages.items.push_back(std::move(message));
  context.set("messages", std::move(messages));
  context.set("tools", tools.items.empty() ? Value() : tools);
  context.set("add_generation_prompt", Value::boolean(true));
  context.set("bos_token", Value::text(""));
  context.set("eos_token", Value::text(""));
  const Value* thinking = options.find("enable_thinking");
  context.set("enable_thinking", thinking ? *thinking : Value::boolean(true));
  try {
    return source.render(context).text;
  } catch (const UserError&) {
    return "";
  }
}

Value as_value(const text::Message& message) {
  const auto text_or_null = [](const std::string& text) { return text.empty() ? Value() : Value::text(text); };
  Value out = Value::map(), calls = Value::list();
  for (const text::ToolCall& call : message.tool_calls) {
    Value one = Value::map();
    one.set("name", Value::text(call.name));
    one.set("arguments", Value::text(call.arguments));
    if (!call.id.empty()) one.set("id", Value::text(call.id));
    calls.items.push_back(std::move(one));
  }
  out.set("content", text_or_null(message.content));
  out.set("reasoning", text_or_null(message.reasoning));
  out.set("tool_calls", std::move(calls));
  return out;
}

}  // namespace

ToolsProbe::ToolsProbe(Options options) : options_(std::move(options)) {
  std::string source;
  if (!options_.template_file.empty()) source = files::read(options_.template_file);
  if (!source.empty()) template_ = std::make_unique<const text::ChatTemplate>(source, options_.template_file.string());
  if (options_.parser == "auto")
    format_ = text::detect_output_format(source);
  else
    format_.tools = options_.parser;
  if (!options_.reasoning.empty()) format_.reasoning = options_.reasoning;
  static_cast<void>(text::OutputParser(format_));  // refuses unknown names
}

std::string ToolsProbe::answer(std::string_view line) const try {
  const Value in = parse_json(line, "line");
  const Value* text = in.is_map() ? in.find("text") : nullptr;
  if (!text || !text->is_text()) refuse("line", "'text' is missing or no string");
  const Value* given = in.find("options");
  const Value options = given && given->is_map() ? *given : Value::map();
  const Value* tools = in.find("tools");
  text::OutputOptions how;
  if (tools && tools->is_list()) how.tools = *tools;
  const std::string choice = word(options, "tool_choice");
  const bool auto_without_tools = options_.parser == "auto" && tools && tools->items.empty();
  how.parse_tools = choice != "none" && choice != "COMMON_CHAT_TOOL_CHOICE_NONE" && !auto_without_tools;
  how.separate_reasoning = word(options, "reasoning_format") != "none";
  if (const Value* schema = options.find("json_schema")) how.json_content = schema->is_map();
  using Thinking = text::OutputOptions::Thinking;
  if (const Value* thinking = options.find("enable_thinking"))
    if (auto on = thinking->as_bool()) how.thinking = *on ? Thinking::on : Thinking::off;
  if (template_) {
    how.begun = begun_answer(prompt_of(*template_, how.tools, options), format_);
    // The template always opens reasoning; a model that was asked not to reason does not continue it.
    const bool open = !how.begun.empty() && how.begun.find_last_not_of(" \t\r\n") + 1 < 32 &&
                      how.begun.find("</") == std::string::npos;
    if (how.thinking == Thinking::off && open) how.begun.clear();
  }
  text::OutputParser parser(format_, how);
  text::Message message;
  if (options_.stream) {
    for (size_t at = 0; at < text->scalar.size();) {
      const size_t begin = at;
      at = std::min(text->scalar.size(), at + text::utf8_length(static_cast<unsigned char>(text->scalar[at])));
      apply(parser.feed(std::string_view(text->scalar).substr(begin, at - begin)), message);
    }
  } else {
    apply(parser.feed(text->scalar), message);
  }
  if (!is_true(options, "is_partial")) apply(parser.finish(), message);
  return to_json(as_value(message));
} catch (const std::exception& error) {
  Value out = Value::map();
  out.set("error", Value::text(error.what()));
  return to_json(out);
}

}  // namespace easydel::probe
