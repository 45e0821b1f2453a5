#include "easydel/server/messages_request.h"

#include <algorithm>

#include "easydel/base/error.h"
#include "easydel/server/request_checker.h"
#include "easydel/server/tool_choice.h"

namespace easydel::server {
namespace {

struct MessageChecker : RequestChecker {
  // A text or a list of text blocks.
  void texts(const Value& value, const BodyPath& path) const {
    if (value.is_text()) return;
    if (!value.is_list()) return wrong(path, config::shown(value) + " is not a string or a list of blocks");
    for (size_t i = 0; i < value.items.size(); ++i) text_block(value.items[i], path[i]);
  }

  void text_block(const Value& value, const BodyPath& path) const {
    if (!is_map(value, path)) return;
    const std::string* const type = text(value, "type", path, true);
    if (!type) return;
    // Nothing is ever fetched: blocks that name a place are refused, whatever place it is.
    if (*type != "text") return wrong(path, "blocks of type '" + *type + "' are not supported here", "send text");
    text(value, "text", path, true);
  }

  void block(const Value& value, bool assistant, const BodyPath& path) const {
    const std::string type = text_of(value, "type");
    if (!assistant && type == "tool_result") {
      text(value, "tool_use_id", path, true);
      if (const Value* const content = member(value, "content")) texts(*content, path / "content");
    } else if (assistant && type == "tool_use") {
      text(value, "id", path, true);
      text(value, "name", path, true);
      object(value, "input", path, true);
    } else if (assistant && type == "thinking") {
      text(value, "thinking", path, true);
    } else if (!assistant || type != "redacted_thinking") {
      text_block(value, path);
    }
  }

  void message(const Value& value, const BodyPath& path) const {
    if (!is_map(value, path)) return;
    const std::string* const role = text(value, "role", path, true);
    if (!role) return;
    if (*role != "user" && *role != "assistant")
      return wrong(path / "role", "'" + *role + "' is not user or assistant",
                   *role == "system" ? "give the system message as 'system'" : "");
    const Value* const content = member(value, "content");
    const BodyPath at = path / "content";
    if (!content) return wrong(at, "is required");
    if (!content->is_list()) return texts(*content, at);
    for (size_t i = 0; i < content->items.size(); ++i) block(content->items[i], *role == "assistant", at[i]);
  }

  void tool(const Value& value, const BodyPath& path) const {
    if (!is_map(value, path)) return;
    const std::string* const type = text(value, "type", path, false);
    if (type && *type != "custom")
      return wrong(path, "tools of type '" + *type + "' are not supported", "send functions, which the client runs");
    text(value, "name", path, true);
    text(value, "description", path, false);
    object(value, "input_schema", path, true);
  }

  void thinking(const Value& value) const {
    if (value.is_null() || !is_map(value, "thinking")) return;
    const std::string* const type = text(value, "type", "thinking", true);
    if (type && *type != "enabled" && *type != "disabled" && *type != "adaptive")
      wrong("thinking.type", "'" + *type + "' is not enabled, adaptive or disabled");
    const Value* const budget = member(value, "budget_tokens");
    if (budget && budget->as_int().value_or(0) < 1)
      wrong("thinking.budget_tokens", config::shown(*budget) + " is not a positive integer");
  }

  void format(const Value& output_config) const {
    if (output_config.is_null() || !is_map(output_config, "output_config")) return;
    const Value* const format = object(output_config, "format", "output_config", false);
    if (!format) return;
    const std::string* const type = text(*format, "type", "output_config.format", true);
    if (type && *type != "json_schema") return wrong("output_config.format.type", "'" + *type + "' is not json_schema");
    object(*format, "schema", "output_config.format", true);
  }
};

Value text_map(std::initializer_list<std::pair<const char*, std::string>> members) {
  Value out = Value::map();
  for (const auto& [name, text] : members) out.set(name, Value::text(text));
  return out;
}

// One text as itself, several as a list of parts, which the template joins as it does for chats.
Value chat_content(const Value& content) {
  if (content.is_text()) return content;
  if (content.items.size() == 1) return Value::text(text_of(content.items[0], "text"));
  Value out = Value::list();
  for (const Value& block : content.items)
    out.items.push_back(text_map({{"type", "text"}, {"text", text_of(block, "text")}}));
  return out;
}

// The text blocks of a list.
Value text_blocks(const Value& content) {
  Value out = Value::list();
  for (const Value& block : content.items)
    if (text_of(block, "type") == "text") out.items.push_back(block);
  return out;
}

void add_user(const Value& content, Value& messages) {
  Value texts = content;
  if (content.is_list()) {
    for (const Value& block : content.items) {
      if (text_of(block, "type") != "tool_result") continue;
      Value result = text_map({{"role", "tool"}, {"tool_call_id", text_of(block, "tool_use_id")}});
      const Value* const text = member(block, "content");
      result.set("content", text ? chat_content(*text) : Value::text(""));
      messages.items.push_back(std::move(result));
    }
    texts = text_blocks(content);
    if (texts.items.empty() && !content.items.empty()) return;
  }
  Value message = text_map({{"role", "user"}});
  message.set("content", texts.is_list() && texts.items.empty() ? Value::text("") : chat_content(texts));
  messages.items.push_back(std::move(message));
}

void add_assistant(const Value& content, Value& messages) {
  Value message = text_map({{"role", "assistant"}});
  Value calls = Value::list();
  std::string thinking;
  Value texts = content;
  if (content.is_list()) {
    for (const Value& block : content.items) {
      const std::string type = text_of(block, "type");
      if (type == "thinking") thinking += text_of(block, "thinking");
      if (type != "tool_use") continue;
      Value call = text_map({{"id", text_of(block, "id")}, {"type", "function"}});
      call.set("function", text_map({{"name", text_of(block, "name")}, {"arguments", to_json(*block.find("input"))}}));
      calls.items.push_back(std::move(call));
    }
    texts = text_blocks(content);
  }
  // Some templates cannot take null.
  const bool no_text = texts.is_list() && texts.items.empty();
  message.set("content", no_text ? Value::text("") : chat_content(texts));
  if (!thinking.empty()) message.set("reasoning_content", Value::text(thinking));
  if (!calls.items.empty()) message.set("tool_calls", std::move(calls));
  messages.items.push_back(std::move(message));
}

Value chat_tools(const Value& tools) {
  if (tools.is_null()) return {};
  Value out = Value::list();
  for (const Value& tool : tools.items) {
    Value function = Value::map();
    for (const char* name : {"name", "description", "strict"})
      if (const Value* const value = member(tool, name)) function.set(name, *value);
    function.set("parameters", *tool.find("input_schema"));
    Value entry = text_map({{"type", "function"}});
    entry.set("function", std::move(function));
    out.items.push_back(std::move(entry));
  }
  return out;
}

// In the form of chats; a type that is not known stays, and is refused with it.
Value chat_choice(const Value& choice) {
  const std::string type = text_of(choice, "type");
  if (type == "any") return Value::text("required");
  if (type != "tool") return type.empty() ? choice : Value::text(type);
  Value out = text_map({{"type", "function"}});
  out.set("function", text_map({{"name", text_of(choice, "name")}}));
  return out;
}

}  // namespace

void MessagesFields::settle(config::Keys& keys) {
  const MessageChecker check{{keys.problems()}};
  if (!messages.is_list())
    keys.refuse("messages", config::shown(messages) + " is not a list of messages");
  else if (messages.items.empty())
    keys.refuse("messages", "is empty");
  for (size_t i = 0; i < messages.items.size(); ++i) check.message(messages.items[i], BodyPath("messages")[i]);
  if (!system.is_null()) check.texts(system, "system");
  if (tools.is_list()) {
    if (tools.items.size() > max_tools) return keys.refuse("tools", str("has more than ", max_tools, " tools"));
    for (size_t i = 0; i < tools.items.size(); ++i) check.tool(tools.items[i], BodyPath("tools")[i]);
  } else if (!tools.is_null()) {
    keys.refuse("tools", config::shown(tools) + " is not a list of tools");
  }
  if (!tool_choice.is_null() && text_of(tool_choice, "type").empty())
    keys.refuse("tool_choice", "is not an object with type auto, any, none or tool");
  else if (!is_wrong(keys, "tools"))
    read_tool_choice(chat_choice(tool_choice), tools, "tool_choice", keys.problems());
  check.thinking(thinking);
  check.format(output_config);
  if (!chat_template_kwargs.is_null() && !chat_template_kwargs.is_map())
    keys.refuse("chat_template_kwargs", config::shown(chat_template_kwargs) + " is not an object");
}

void MessagesOnlyFields::settle(config::Keys& keys) { check_stops("stop_sequences", stop_sequences, keys); }

config::Section MessagesRequest::section() {
  return with_rule(config::flat<&MessagesRequest::fields, &MessagesRequest::only, &MessagesRequest::generation>(
                       "A request to answer a conversation, in Anthropic's form."),
                   [](const void* object, const std::string& path, config::Problems& problems) {
                     refuse_several_answers(static_cast<const MessagesRequest*>(object)->generation, path, problems);
                   });
}

ChatRequest chat_request_of(const MessagesFields& fields) {
  ChatRequest out;
  out.generation.model = fields.model;
  Value messages = Value::list();
  if (!fields.system.is_null()) {
    messages.items.push_back(text_map({{"role", "system"}}));
    messages.items.back().set("content", chat_content(fields.system));
  }
  for (const Value& message : fields.messages.items) {
    const bool assistant = text_of(message, "role") == "assistant";
    (assistant ? add_assistant : add_user)(*message.find("content"), messages);
  }
  out.conversation.messages = std::move(messages);
  out.conversation.tools = chat_tools(fields.tools);
  out.conversation.chat_template_kwargs = fields.chat_template_kwargs;
  // An answer that the client has begun is continued.
  const Value& last = out.conversation.messages.items.back();
  if (text_of(last, "role") == "assistant" && !text_of(last, "content").empty() && !member(last, "tool_calls")) {
    out.conversation.continue_final_message = true;
    out.conversation.add_generation_prompt = false;
  }
  const std::string thinking = text_of(fields.thinking, "type");
  if (!thinking.empty()) out.conversation.enable_thinking = thinking != "disabled";
  if (const Value* const budget = member(fields.thinking, "budget_tokens")) out.chat.thinking_budget = budget->as_int();
  out.chat.tool_choice = chat_choice(fields.tool_choice);
  if (const Value* const one = member(fields.tool_choice, "disable_parallel_tool_use"))
    out.chat.parallel_tool_calls = !one->as_bool().value_or(false);
  if (const Value* const format = member(fields.output_config, "format")) {
    Value schema = Value::map();
    schema.set("schema", *format->find("schema"));
    Value response_format = text_map({{"type", "json_schema"}});
    response_format.set("json_schema", std::move(schema));
    out.chat.response_format = std::move(response_format);
    out.schema_field = "output_config.format.schema";
  }
  return out;
}

ChatRequest chat_request_of(const MessagesRequest& request) {
  ChatRequest out = chat_request_of(request.fields);
  out.generation = request.generation;
  out.chat.max_completion_tokens = request.only.max_tokens;
  if (!request.only.stop_sequences.empty()) {
    config::Many<std::string> stops;
    stops.assign(request.only.stop_sequences.begin(), request.only.stop_sequences.end());
    out.generation.stop = std::move(stops);
  }
  return out;
}

}  // namespace easydel::server
