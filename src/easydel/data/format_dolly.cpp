// format: dolly. An instruction, perhaps with a context, and its response.
#include <array>

#include "easydel/data/row_format.h"

namespace easydel::data {
namespace {

constexpr std::array<std::string_view, 3> dolly_fields{"instruction", "context", "response"};

void convert_dolly(FormatRow& row) {
  const std::string instruction = row.text("instruction"), context = row.text_or_empty("context"),
                    response = row.text("response");
  for (const std::string_view field : dolly_fields) row.drop(field);
  for (const char* other : {"text", "prompt", "completion", "content"}) row.set(other, {});
  row.set("instruction", Value::text(instruction));
  row.set("input", Value::text(context));
  row.set("output", Value::text(response));
}

}  // namespace

extern const RowFormat dolly_format{"dolly", dolly_fields, convert_dolly};

}  // namespace easydel::data
