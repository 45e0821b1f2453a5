// format: segments. A text in parts, each learned or not (Axolotl's input_output): {segments: [{label, text}]}.
#include <array>

#include "easydel/data/row_format.h"

namespace easydel::data {
namespace {

constexpr std::array<std::string_view, 1> segments_fields{"segments"};

void convert_segments(FormatRow& row) {
  const Value segments = row.need("segments");
  const char* const form = R"(as in [{"label": false, "text": "Question"}, {"label": true, "text": "Answer"}])";
  if (!segments.is_list() || segments.items.empty()) row.refuse_row("'segments' is not a list of parts", form);
  for (const Value& part : segments.items) {
    const Value* const label = part.is_map() ? part.find("label") : nullptr;
    const Value* const text = part.is_map() ? part.find("text") : nullptr;
    if (!label || !label->as_bool() || !text || !text->is_text())
      row.refuse_row("a part of 'segments' has no label that is true or false, or no text", form);
  }
  row.set("segments", segments);
}

}  // namespace

extern const RowFormat segments_format{"segments", segments_fields, convert_segments};

}  // namespace easydel::data
