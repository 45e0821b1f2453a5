// format: openai. Chat completions' messages, with tools and calls.
#include <array>

#include "easydel/data/row_format.h"

namespace easydel::data {
namespace {

constexpr std::array<std::string_view, 7> openai_fields{"messages", "tools", "functions", "chosen",
                                                        "rejected", "label", "system"};

// The older `function_call` of a message as `tool_calls`.
void convert_call(Value& message) {
  const Value* const call = message.find("function_call");
  if (!call || !call->is_map() || message.find("tool_calls")) return;
  Value wrapped = Value::map(), calls = Value::list();
  wrapped.set("type", Value::text("function"));
  wrapped.set("function", *call);
  calls.items.push_back(std::move(wrapped));
  message.set("tool_calls", std::move(calls));
}

void convert_openai(FormatRow& row) {
  Value messages = row.messages("messages");
  for (Value& message : messages.items) convert_call(message);
  if (const std::string system = row.text_or_empty("system"); !system.empty())
    messages.items.insert(messages.items.begin(), message_of("system", Value::text(system)));
  for (const char* field : {"tools", "functions"})
    if (const Value* const tools = row.find(field)) row.set("tools", tools_of(*tools, field));
  set_conversation(row, std::move(messages));
}

}  // namespace

extern const RowFormat openai_format{"openai", openai_fields, convert_openai};

}  // namespace easydel::data
