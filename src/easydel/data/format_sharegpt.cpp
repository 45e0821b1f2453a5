// format: sharegpt. Conversations of {from, value}: human, gpt, system, observation, function_call.
#include <array>

#include "easydel/data/row_format.h"

namespace easydel::data {
namespace {

constexpr std::array<std::string_view, 6> sharegpt_fields{"conversations", "system",   "tools",
                                                          "chosen",        "rejected", "label"};

void convert_sharegpt(FormatRow& row) {
  Value messages = row.messages("conversations");
  const std::string system = row.text_or_empty("system");
  if (!system.empty()) messages.items.insert(messages.items.begin(), message_of("system", Value::text(system)));
  if (const Value* const tools = row.find("tools")) row.set("tools", tools_of(*tools, "tools"));
  set_conversation(row, std::move(messages));
  row.drop("conversations");
}

}  // namespace

extern const RowFormat sharegpt_format{"sharegpt", sharegpt_fields, convert_sharegpt};

}  // namespace easydel::data
