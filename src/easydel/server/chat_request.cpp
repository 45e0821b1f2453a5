#include "easydel/server/chat_request.h"

#include <algorithm>

#include "easydel/base/error.h"
#include "easydel/config/codec.h"
#include "easydel/server/request_checker.h"
#include "easydel/server/tool_choice.h"

namespace easydel::server {
namespace {

const std::vector<std::string> roles = {"system", "developer", "user", "assistant", "tool", "function"};

struct Checker : RequestChecker {
  void part(const Value& value, const BodyPath& path) const {
    if (!is_map(value, path)) return;
    const std::string* const type = text(value, "type", path, true);
    if (!type) return;
    // Nothing is ever fetched: parts that name a place are refused, whatever place it is.
    if (*type != "text" && *type != "refusal")
      return wrong(path, "parts of type '" + *type + "' are not supported", "send text");
    text(value, type->c_str(), path, true);
  }

  void content(const Value& message, const BodyPath& path, bool needed) const {
    const Value* const value = message.find("content");
    const BodyPath at = path / "content";
    if (!value || value->is_null()) return needed ? wrong(at, "is required") : void();
    if (value->is_text()) return;
    if (!value->is_list()) return wrong(at, config::shown(*value) + " is not a string or a list of parts");
    for (size_t i = 0; i < value->items.size(); ++i) part(value->items[i], at[i]);
  }

  void call(const Value& value, const BodyPath& path) const {
    if (!is_map(value, path)) return;
    text(value, "id", path, false);
    const Value* const function = value.find("function");
    const BodyPath at = path / "function";
    if (!function) return wrong(at, "is required");
    if (!is_map(*function, at)) return;
    text(*function, "name", at, true);
    const Value* const arguments = function->find("arguments");
    if (arguments && !arguments->is_text() && !arguments->is_map() && !arguments->is_null())
      wrong(at / "arguments", config::shown(*arguments) + " is not a string or an object");
  }

  void message(const Value& value, const BodyPath& path) const {
    if (!is_map(value, path)) return;
    const std::string* const role = text(value, "role", path, true);
    if (!role) return;
    if (std::ranges::find(roles, *role) == roles.end())
      return wrong(path / "role", "'" + *role + "' is not a role", did_you_mean(*role, roles));
    const Value* const calls = value.find("tool_calls");
    const bool has_calls = calls && !calls->is_null();
    const bool has_call = value.find("function_call") && !value.find("function_call")->is_null();
    content(value, path, *role != "assistant" || (!has_calls && !has_call && !value.find("reasoning_content")));
    for (const char* name : {"name", "tool_call_id", "reasoning_content"}) text(value, name, path, false);
    if (!has_calls) return;
    const BodyPath at = path / "tool_calls";
    if (*role != "assistant") return wrong(at, "only an assistant's message has calls");
    if (!calls->is_list()) return wrong(at, config::shown(*calls) + " is not a list");
    for (size_t i = 0; i < calls->items.size(); ++i) call(calls->items[i], at[i]);
  }

  void tool(const Value& value, const BodyPath& path) const {
    if (!is_map(value, path)) return;
    const std::string* const type = text(value, "type", path, false);
    if (type && *type != "function")
      return wrong(path, "tools of type '" + *type + "' are not supported", "send functions");
    const Value* const own = value.find("function");
    const BodyPath at = path / "function";
    if (!own) return wrong(at, "is required");
    function(*own, at);
  }

  void function(const Value& value, const BodyPath& path) const {
    if (!is_map(value, path)) return;
    text(value, "name", path, true);
    text(value, "description", path, false);
    const Value* const parameters = value.find("parameters");
    if (parameters && !parameters->is_null()) is_map(*parameters, path / "parameters");
  }
};

// The old form of tools.
void check_functions(const Value& functions, const std::string& path, config::Problems& problems) {
  const Checker check{{problems}};
  if (functions.is_null()) return;
  if (!functions.is_list()) return check.wrong(path, config::shown(functions) + " is not a list of functions");
  if (functions.items.size() > max_tools) return check.wrong(path, str("has more than ", max_tools, " functions"));
  for (size_t i = 0; i < functions.items.size(); ++i) check.function(functions.items[i], BodyPath(path)[i]);
}

}  // namespace

void check_messages(const Value& messages, const std::string& path, config::Problems& problems) {
  const Checker check{{problems}};
  if (!messages.is_list()) return check.wrong(path, config::shown(messages) + " is not a list of messages");
  if (messages.items.empty()) return check.wrong(path, "is empty");
  for (size_t i = 0; i < messages.items.size(); ++i) check.message(messages.items[i], BodyPath(path)[i]);
}

void check_tools(const Value& tools, const std::string& path, config::Problems& problems) {
  const Checker check{{problems}};
  if (tools.is_null()) return;
  if (!tools.is_list()) return check.wrong(path, config::shown(tools) + " is not a list of tools");
  if (tools.items.size() > max_tools) return check.wrong(path, str("has more than ", max_tools, " tools"));
  for (size_t i = 0; i < tools.items.size(); ++i) check.tool(tools.items[i], BodyPath(path)[i]);
}

void ConversationFields::settle(config::Keys& keys) {
  check_messages(messages, keys.path_of("messages"), keys.problems());
  check_tools(tools, keys.path_of("tools"), keys.problems());
  if (!chat_template_kwargs.is_null() && !chat_template_kwargs.is_map())
    keys.refuse("chat_template_kwargs", config::shown(chat_template_kwargs) + " is not an object");
  if (!documents.is_null() && !documents.is_list())
    keys.refuse("documents", config::shown(documents) + " is not a list");
  if (reasoning_effort && std::ranges::find(efforts, *reasoning_effort) == efforts.end())
    keys.refuse("reasoning_effort", "'" + *reasoning_effort + "' is not none, minimal, low, medium, high or xhigh");
  if (add_generation_prompt.value_or(false) && continue_final_message.value_or(false))
    keys.refuse("continue_final_message", "and add_generation_prompt exclude each other", "give one of them");
}

void ChatOnlyFields::settle(config::Keys& keys) {
  check_functions(functions, keys.path_of("functions"), keys.problems());
  if (top_logprobs && !logprobs.value_or(false) && !is_wrong(keys, "logprobs"))
    keys.refuse("top_logprobs", "is given without logprobs", "set logprobs: true");
  if (!response_format.is_null()) {
    const Value* const type = response_format.is_map() ? response_format.find("type") : nullptr;
    if (!type || (type->scalar != "text" && type->scalar != "json_object" && type->scalar != "json_schema"))
      return keys.refuse("response_format", "is not an object with type text, json_object or json_schema");
    const Value* const schema = response_format.find("json_schema");
    if (type->scalar == "json_schema" && (!schema || !schema->is_map() || !schema->find("schema")))
      keys.refuse("response_format.json_schema", "has no schema", "give {\"name\": ..., \"schema\": {...}}");
  }
}

void ChatRequest::check_together(config::Keys& keys) const {
  config::Problems of_tools("");
  check_tools(conversation.tools, "tools", of_tools);
  if (of_tools.empty() && !is_wrong(keys, "tools"))
    read_tool_choice(chat.tool_choice, conversation.tools, keys.path_of("tool_choice"), keys.problems());
  if (max_tokens() == 0 && !is_wrong(keys, "max_completion_tokens"))
    keys.refuse("max_tokens", "0 leaves no answer", "give at least 1");
  const std::string format = text_of(chat.response_format, "type");
  if (!format.empty() && format != "text" && !generation.constraint_field().empty())
    keys.refuse("response_format", "and other constraints exclude each other", "give one constraint");
}

std::optional<int64_t> ChatRequest::max_tokens() const {
  return chat.max_completion_tokens ? chat.max_completion_tokens : generation.max_tokens;
}

config::Section ChatRequest::section() {
  return with_rule(config::flat<&ChatRequest::conversation, &ChatRequest::chat, &ChatRequest::generation>(
                       "A request to answer a conversation."),
                   [](const void* object, const std::string& path, config::Problems& problems) {
                     config::Keys keys(problems, path);
                     static_cast<const ChatRequest*>(object)->check_together(keys);
                   });
}

}  // namespace easydel::server
