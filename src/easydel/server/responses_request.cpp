#include "easydel/server/responses_request.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "easydel/base/error.h"
#include "easydel/server/request_checker.h"
#include "easydel/server/tool_choice.h"

namespace easydel::server {
namespace {

using namespace std::string_view_literals;

constexpr std::array item_roles = {"system"sv, "developer"sv, "user"sv, "assistant"sv};

bool is_text_part(std::string_view type) {
  return type == "input_text" || type == "output_text" || type == "text" || type == "refusal" ||
         type == "summary_text" || type == "reasoning_text";
}

// "message" may be left out.
std::string type_of_item(const Value& item) {
  const std::string type = text_of(item, "type");
  return type.empty() && member(item, "role") ? "message" : type;
}

struct ItemChecker : RequestChecker {
  // A text or a list of parts that are texts.
  void texts(const Value& item, std::string_view name, const BodyPath& path, bool needed) const {
    const BodyPath at = path / name;
    const Value* const value = member(item, name);
    if (!value) return needed ? wrong(at, "is required") : void();
    if (value->is_text()) return;
    if (!value->is_list()) return wrong(at, config::shown(*value) + " is not a string or a list of parts");
    for (size_t i = 0; i < value->items.size(); ++i) part(value->items[i], at[i]);
  }

  void part(const Value& value, const BodyPath& path) const {
    if (!is_map(value, path)) return;
    const std::string* const type = text(value, "type", path, true);
    if (!type) return;
    // Nothing is ever fetched: parts that name a place are refused, whatever place it is.
    if (!is_text_part(*type)) return wrong(path, "parts of type '" + *type + "' are not supported", "send text");
    text(value, *type == "refusal" ? "refusal" : "text", path, true);
  }

  void item(const Value& value, const BodyPath& path) const {
    if (!is_map(value, path)) return;
    const std::string type = type_of_item(value);
    if (type == "message") {
      const std::string* const role = text(value, "role", path, true);
      if (role && std::ranges::find(item_roles, *role) == item_roles.end())
        wrong(path / "role", "'" + *role + "' is not a role", "system, developer, user or assistant");
      texts(value, "content", path, true);
    } else if (type == "function_call") {
      for (const char* name : {"call_id", "name", "arguments"}) text(value, name, path, true);
    } else if (type == "function_call_output") {
      text(value, "call_id", path, true);
      texts(value, "output", path, true);
    } else if (type == "reasoning") {
      texts(value, "summary", path, false);
      texts(value, "content", path, false);
    } else if (type.empty()) {
      wrong(path / "type", "is required");
    } else {
      wrong(path, "items of type '" + type + "' are not supported",
            "send messages, function_call, function_call_output and reasoning");
    }
  }

  void tool(const Value& value, const BodyPath& path) const {
    if (!is_map(value, path)) return;
    const std::string* const type = text(value, "type", path, true);
    if (!type) return;
    if (*type != "function")
      return wrong(path, "tools of type '" + *type + "' are not supported", "send functions, which the client runs");
    text(value, "name", path, true);
    text(value, "description", path, false);
    object(value, "parameters", path, false);
  }

  void format(const Value& text_field) const {
    if (text_field.is_null() || !is_map(text_field, "text")) return;
    const Value* const format = object(text_field, "format", "text", false);
    if (!format) return;
    const std::string* const type = text(*format, "type", "text.format", true);
    if (!type || *type == "text" || *type == "json_object") return;
    if (*type != "json_schema")
      return wrong("text.format.type", "'" + *type + "' is not text, json_object or json_schema");
    object(*format, "schema", "text.format", true);
  }
};

std::string joined_texts(const Value* parts) {
  if (!parts) return "";
  if (parts->is_text()) return parts->scalar;
  std::string out;
  for (const Value& part : parts->items) out += text_of(part, text_of(part, "type") == "refusal" ? "refusal" : "text");
  return out;
}

// One text as itself, several as a list of parts, which the template joins as it does for chats.
Value message_content(const Value& content) {
  if (!content.is_list()) return content;
  if (content.items.size() == 1) return Value::text(joined_texts(&content));
  Value out = Value::list();
  for (const Value& part : content.items) {
    Value text = Value::map();
    text.set("type", Value::text("text"));
    text.set("text", Value::text(text_of(part, text_of(part, "type") == "refusal" ? "refusal" : "text")));
    out.items.push_back(std::move(text));
  }
  return out;
}

Value message_of_role(std::string_view role) {
  Value out = Value::map();
  out.set("role", Value::text(std::string(role)));
  return out;
}

class MessagesOfItems {
 public:
  void add(const Value& item) {
    const std::string type = type_of_item(item);
    if (type == "message") {
      const std::string role = text_of(item, "role");
      Value& message = role == "assistant" ? assistant({"content", "tool_calls"}) : open(role);
      message.set("content", message_content(*item.find("content")));
    } else if (type == "function_call") {
      Value function = Value::map();
      function.set("name", *item.find("name"));
      function.set("arguments", *item.find("arguments"));
      Value call = Value::map();
      call.set("id", *item.find("call_id"));
      call.set("type", Value::text("function"));
      call.set("function", std::move(function));
      Value& message = assistant({});
      if (!message.find("tool_calls")) message.set("tool_calls", Value::list());
      message.find("tool_calls")->items.push_back(std::move(call));
    } else if (type == "function_call_output") {
      Value& message = open("tool");
      message.set("tool_call_id", *item.find("call_id"));
      message.set("content", message_content(*item.find("output")));
    } else if (type == "reasoning") {
      std::string text = joined_texts(member(item, "content"));
      if (text.empty()) text = joined_texts(member(item, "summary"));
      if (!text.empty())
        assistant({"reasoning_content", "content", "tool_calls"}).set("reasoning_content", Value::text(text));
    }
  }

  Value take() {
    for (Value& message : out_.items)
      if (!message.find("content")) message.set("content", Value::text(""));  // some templates cannot take null
    return std::move(out_);
  }

 private:
  Value& open(std::string_view role) {
    out_.items.push_back(message_of_role(role));
    return out_.items.back();
  }
  // The assistant's message at the end, unless it has one of these members already.
  Value& assistant(std::initializer_list<std::string_view> not_with) {
    const bool goes_on = !out_.items.empty() && text_of(out_.items.back(), "role") == "assistant" &&
                         std::ranges::none_of(not_with, [&](auto name) { return out_.items.back().find(name); });
    return goes_on ? out_.items.back() : open("assistant");
  }
  Value out_ = Value::list();
};

// {"type": "function", "name": ..., ...} to {"type": "function", "function": {"name": ..., ...}}.
Value nested_function(const Value& flat) {
  Value function = Value::map();
  for (const auto& [key, value] : flat.entries)
    if (key != "type") function.set(key, value);
  Value out = Value::map();
  out.set("type", Value::text("function"));
  out.set("function", std::move(function));
  return out;
}

Value nested_functions(const Value& list) {
  Value out = Value::list();
  for (const Value& one : list.items) out.items.push_back(nested_function(one));
  return out;
}

Value nested_choice(const Value& choice) {
  const std::string type = text_of(choice, "type");
  if (type == "function") return nested_function(choice);
  if (type != "allowed_tools") return choice;
  Value allowed = Value::map();
  if (const Value* const mode = member(choice, "mode")) allowed.set("mode", *mode);
  allowed.set("tools", nested_functions(*choice.find("tools")));
  Value out = Value::map();
  out.set("type", Value::text(type));
  out.set("allowed_tools", std::move(allowed));
  return out;
}

Value response_format_of(const Value& text) {
  const Value* const format = member(text, "format");
  if (!format) return {};
  Value out = Value::map();
  out.set("type", *format->find("type"));
  if (text_of(*format, "type") != "json_schema") return out;
  Value schema = Value::map();
  for (const auto& [key, value] : format->entries)
    if (key != "type") schema.set(key, value);
  out.set("json_schema", std::move(schema));
  return out;
}

}  // namespace

void ResponsesFields::settle(config::Keys& keys) {
  const ItemChecker check{{keys.problems()}};
  if (input.is_list()) {
    if (input.items.empty()) keys.refuse("input", "is empty", "give a text or items");
    for (size_t i = 0; i < input.items.size(); ++i) check.item(input.items[i], BodyPath("input")[i]);
  } else if (!input.is_text()) {
    keys.refuse("input", config::shown(input) + " is not a text or a list of items");
  }
  if (tools.is_list()) {
    if (tools.items.size() > max_tools) return keys.refuse("tools", str("has more than ", max_tools, " tools"));
    for (size_t i = 0; i < tools.items.size(); ++i) check.tool(tools.items[i], BodyPath("tools")[i]);
  } else if (!tools.is_null()) {
    keys.refuse("tools", config::shown(tools) + " is not a list of tools");
  }
  if (!is_wrong(keys, "tools")) read_tool_choice(tool_choice, tools, "tool_choice", keys.problems());
  check.format(text);
  if (!reasoning.is_null() && check.is_map(reasoning, "reasoning")) {
    const std::string* const effort = check.text(reasoning, "effort", "reasoning", false);
    if (effort && std::ranges::find(efforts, *effort) == efforts.end())
      check.wrong("reasoning.effort", "'" + *effort + "' is not none, minimal, low, medium, high or xhigh");
  }
  if (truncation && *truncation != "auto" && *truncation != "disabled")
    keys.refuse("truncation", "'" + *truncation + "' is not auto or disabled");
  if (background.value_or(false))
    keys.refuse("background", "answering in the background is not supported", "use stream: true");
  if (!prompt.is_null()) keys.refuse("prompt", "stored prompts are not supported", "send the text as input");
  if (!chat_template_kwargs.is_null() && !chat_template_kwargs.is_map())
    keys.refuse("chat_template_kwargs", config::shown(chat_template_kwargs) + " is not an object");
  if (!conversation.is_null() && conversation_id().empty())
    keys.refuse("conversation", "is not the id of a conversation, or an object with an id");
  if (!conversation.is_null() && previous_response_id)
    keys.refuse("previous_response_id", "and conversation exclude each other", "give one of them");
}

std::string ResponsesFields::conversation_id() const {
  return conversation.is_text() ? conversation.scalar : text_of(conversation, "id");
}

bool ResponsesFields::wants_logprobs() const {
  return std::ranges::find(include, "message.output_text.logprobs") != include.end() || top_logprobs.value_or(0) > 0;
}

config::Section ResponsesRequest::section() {
  return with_rule(
      config::flat<&ResponsesRequest::fields, &ResponsesRequest::generation>("A request to create a response."),
      [](const void* object, const std::string& path, config::Problems& problems) {
        refuse_several_answers(static_cast<const ResponsesRequest*>(object)->generation, path, problems);
      });
}

Value input_items(const Value& input) {
  if (!input.is_text()) return input;
  Value message = message_of_role("user");
  message.set("content", input);
  Value out = Value::list();
  out.items.push_back(std::move(message));
  return out;
}

Value messages_of_items(const Value& items) {
  MessagesOfItems out;
  for (const Value& item : items.items) out.add(item);
  return out.take();
}

ChatRequest chat_request_of(const ResponsesRequest& request, const Value& history) {
  const ResponsesFields& fields = request.fields;
  ChatRequest out;
  out.generation = request.generation;
  Value items = Value::list();
  if (fields.instructions) {
    items.items.push_back(message_of_role("system"));
    items.items.back().set("content", Value::text(*fields.instructions));
  }
  items.items.insert(items.items.end(), history.items.begin(), history.items.end());
  const Value input = input_items(fields.input);
  items.items.insert(items.items.end(), input.items.begin(), input.items.end());
  out.conversation.messages = messages_of_items(items);
  if (out.conversation.messages.items.empty()) refuse("input", "has nothing to answer", "give a text or a message");
  if (fields.tools.is_list()) out.conversation.tools = nested_functions(fields.tools);
  out.conversation.chat_template_kwargs = fields.chat_template_kwargs;
  out.conversation.enable_thinking = fields.enable_thinking;
  const std::string effort = text_of(fields.reasoning, "effort");
  if (effort == "none")
    out.conversation.enable_thinking = false;
  else if (!effort.empty())
    out.conversation.reasoning_effort = effort;
  out.chat.tool_choice = nested_choice(fields.tool_choice);
  out.chat.parallel_tool_calls = fields.parallel_tool_calls;
  out.chat.response_format = response_format_of(fields.text);
  out.schema_field = "text.format.schema";
  out.chat.thinking_budget = fields.thinking_budget;
  out.chat.max_completion_tokens = fields.max_output_tokens;
  if (fields.wants_logprobs()) {
    out.chat.logprobs = true;
    out.chat.top_logprobs = fields.top_logprobs;
  }
  return out;
}

}  // namespace easydel::server
