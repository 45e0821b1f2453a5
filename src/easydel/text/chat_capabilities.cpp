// Probes a chat template with words that occur nowhere else.
#include "easydel/text/chat_capabilities.h"

#include <optional>

#include "easydel/base/error.h"

namespace easydel::text {
namespace {

const Value& conversations() {
  static const Value all = parse_json(R"({
    "user": [{"role": "user", "content": "quaffle"}],
    "parts": [{"role": "user", "content": [{"type": "text", "text": "quaffle"}]}],
    "system": [{"role": "system", "content": "snorkack"}, {"role": "user", "content": "quaffle"}],
    "called": [{"role": "user", "content": "quaffle"},
      {"role": "assistant", "content": "", "tool_calls": [{"id": "abcdefghi", "type": "function",
        "function": {"name": "nargle", "arguments": {"plimpy": "wrackspurt"}}}]},
      {"role": "tool", "tool_call_id": "abcdefghi", "name": "nargle", "content": "gulping"},
      {"role": "assistant", "content": "butterbeer"}, {"role": "user", "content": "quaffle"}],
    "called_text": [{"role": "user", "content": "quaffle"},
      {"role": "assistant", "content": "", "tool_calls": [{"id": "abcdefghi", "type": "function",
        "function": {"name": "nargle", "arguments": "{\"plimpy\": \"wrackspurt\"}"}}]},
      {"role": "tool", "tool_call_id": "abcdefghi", "name": "nargle", "content": "gulping"},
      {"role": "assistant", "content": "butterbeer"}, {"role": "user", "content": "quaffle"}],
    "reasoned": [{"role": "user", "content": "quaffle"},
      {"role": "assistant", "content": "butterbeer", "reasoning_content": "heliopath", "thinking": "heliopath"}],
    "tools": [{"type": "function", "function": {"name": "nargle", "description": "d",
      "parameters": {"type": "object", "properties": {"plimpy": {"type": "string", "description": "d"}}, "required": ["plimpy"]}}}]
  })");
  return all;
}

struct Asked {
  const char* messages;
  bool tools = false, prompt = true;
  std::optional<bool> thinking = {};
};

// nullopt: the template refuses the conversation.
std::optional<std::string> rendered(const ChatTemplate& source, const Asked& asked) {
  Value context = Value::map();
  context.set("messages", *conversations().find(asked.messages));
  context.set("tools", asked.tools ? *conversations().find("tools") : Value());
  context.set("add_generation_prompt", Value::boolean(asked.prompt));
  context.set("bos_token", Value::text("<s>"));
  context.set("eos_token", Value::text("</s>"));
  if (asked.thinking) context.set("enable_thinking", Value::boolean(*asked.thinking));
  try {
    return source.render(context).text;
  } catch (const UserError&) {
    return std::nullopt;
  }
}

bool says(const std::optional<std::string>& text, const char* word) {
  return text && text->find(word) != std::string::npos;
}

}  // namespace

ChatCapabilities capabilities_of(const ChatTemplate& source) {
  ChatCapabilities out;
  // Some templates accept only conversations with tools.
  auto user = rendered(source, {"user"});
  const bool needs_tools = !says(user, "quaffle");
  if (needs_tools) user = rendered(source, {"user", true});
  const auto parts = rendered(source, {"parts", needs_tools});
  out.content_strings = says(user, "quaffle");
  // If the list was printed as Python prints lists, the template did not understand it.
  out.content_parts = says(parts, "quaffle") && !says(parts, "'text'") && !says(parts, "\"text\"");
  out.conversation = out.content_strings || out.content_parts;
  out.system_role = says(rendered(source, {"system", needs_tools}), "snorkack");
  out.tools = says(rendered(source, {"user", true}), "nargle");
  auto called = rendered(source, {"called", true});
  if (!says(called, "wrackspurt")) called = rendered(source, {"called_text", true});
  out.tool_calls = says(called, "wrackspurt");
  out.tool_results = says(called, "gulping");
  const auto on = rendered(source, {.messages = "user", .tools = needs_tools, .thinking = true}),
             off = rendered(source, {.messages = "user", .tools = needs_tools, .thinking = false});
  out.thinking = on != off;
  out.keeps_reasoning =
      says(rendered(source, {.messages = "reasoned", .tools = needs_tools, .prompt = false}), "heliopath");
  out.generation_prompt = user != rendered(source, {.messages = "user", .tools = needs_tools, .prompt = false});
  out.generation_markers = source.marks_generation();
  return out;
}

}  // namespace easydel::text
