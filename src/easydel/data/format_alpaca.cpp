// format: alpaca. An instruction, perhaps with an input, earlier turns and a system message, and its output.
#include <array>

#include "easydel/data/row_format.h"

namespace easydel::data {
namespace {

constexpr std::array<std::string_view, 9> alpaca_fields{"instruction", "input",  "output",   "history", "system",
                                                        "tools",       "chosen", "rejected", "label"};

// Earlier turns: a list of [instruction, output].
void add_history(const FormatRow& row, Value& messages) {
  const Value* const history = row.find("history");
  if (!history) return;
  if (!history->is_list()) row.refuse_row("'history' is not a list of pairs", "as in [[\"Hello\", \"Good day\"]]");
  for (const Value& pair : history->items) {
    if (!pair.is_list() || pair.items.size() != 2)
      row.refuse_row("'history' is not a list of pairs", "as in [[\"Hello\", \"Good day\"]]");
    messages.items.push_back(message_of("user", pair.items[0]));
    messages.items.push_back(message_of("assistant", pair.items[1]));
  }
}

void convert_alpaca(FormatRow& row) {
  const std::string instruction = row.text("instruction"), input = row.text_or_empty("input"),
                    system = row.text_or_empty("system");
  Value messages = Value::list();
  if (!system.empty()) messages.items.push_back(message_of("system", Value::text(system)));
  add_history(row, messages);
  const bool is_plain = messages.items.empty() && !row.find("tools") && !row.find("label");
  const bool is_pair = row.find("chosen") && row.find("rejected");
  if (is_plain) {  // the kinds know it, also as text for tokenizers without a chat template
    const Value output = is_pair ? Value() : Value::text(row.text("output"));
    const Value chosen = is_pair ? Value::text(row.text("chosen")) : Value();
    const Value rejected = is_pair ? Value::text(row.text("rejected")) : Value();
    for (const std::string_view field : alpaca_fields) row.drop(field);
    for (const char* other : {"text", "prompt", "completion", "content"}) row.set(other, {});
    row.set("instruction", Value::text(instruction));
    row.set("input", Value::text(input));
    if (is_pair) {
      row.set("chosen", chosen);
      row.set("rejected", rejected);
    } else {
      row.set("output", output);
    }
    return;
  }
  messages.items.push_back(message_of("user", Value::text(input.empty() ? instruction : instruction + "\n" + input)));
  if (const Value* const tools = row.find("tools")) row.set("tools", tools_of(*tools, "tools"));
  if (!is_pair && !row.find("label")) {
    Value answer = Value::list();
    answer.items.push_back(message_of("assistant", Value::text(row.text("output"))));
    row.set("prompt", std::move(messages));
    row.set("completion", std::move(answer));
    return;
  }
  if (!is_pair) messages.items.push_back(message_of("assistant", Value::text(row.text("output"))));
  set_conversation(row, std::move(messages));
}

}  // namespace

extern const RowFormat alpaca_format{"alpaca", alpaca_fields, convert_alpaca};

}  // namespace easydel::data
