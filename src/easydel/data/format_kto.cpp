// format: kto. A conversation, or a prompt and its completion, with a label that says whether the answer is good.
#include <array>

#include "easydel/data/row_format.h"

namespace easydel::data {
namespace {

constexpr std::array<std::string_view, 6> kto_fields{"prompt",        "completion", "messages",
                                                     "conversations", "tools",      "label"};

void convert_kto(FormatRow& row) {
  row.need("label");
  if (const Value* const tools = row.find("tools")) row.set("tools", tools_of(*tools, "tools"));
  for (const char* field : {"messages", "conversations"})
    if (row.find(field)) return set_conversation(row, row.messages(field));
  const Value prompt = row.need("prompt"), completion = row.need("completion"), label = row.need("label");
  row.set("prompt", prompt);
  row.set("completion", completion);
  row.set("label", label);
}

}  // namespace

extern const RowFormat kto_format{"kto", kto_fields, convert_kto};

}  // namespace easydel::data
