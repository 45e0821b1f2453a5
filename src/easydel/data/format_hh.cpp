// format: hh. Two transcripts of one conversation, "\n\nHuman: ...\n\nAssistant: ...", that differ in the last answer
// (Anthropic's helpful and harmless data).
#include <array>
#include <string>

#include "easydel/data/row_format.h"

namespace easydel::data {
namespace {

constexpr std::array<std::string_view, 2> hh_fields{"chosen", "rejected"};
constexpr std::array<std::pair<std::string_view, const char*>, 2> speakers{
    {{"\n\nHuman:", "user"}, {"\n\nAssistant:", "assistant"}}};

// The next speaker's mark at or after `from`; npos: none.
std::pair<size_t, size_t> next_speaker(const std::string& text, size_t from) {
  size_t best = std::string::npos, which = 0;
  for (size_t s = 0; s < speakers.size(); ++s)
    if (const size_t at = text.find(speakers[s].first, from); at < best) best = at, which = s;
  return {best, which};
}

std::string without_blanks(const std::string& text) {
  const size_t begin = text.find_first_not_of(" \n\t"), end = text.find_last_not_of(" \n\t");
  return begin == std::string::npos ? "" : text.substr(begin, end - begin + 1);
}

Value turns_of(const FormatRow& row, std::string_view field) {
  const std::string text = row.text(field);
  Value out = Value::list();
  auto [at, speaker] = next_speaker(text, 0);
  if (at != 0)
    row.refuse_row("'" + row.name_of(field) + "' is not a transcript",
                   "it begins with two line ends and 'Human:' or 'Assistant:'");
  while (at != std::string::npos) {
    const size_t begin = at + speakers[speaker].first.size();
    const auto [end, following] = next_speaker(text, begin);
    out.items.push_back(
        message_of(speakers[speaker].second, Value::text(without_blanks(text.substr(begin, end - begin)))));
    at = end, speaker = following;
  }
  if (out.items.back().find("role")->scalar != "assistant")
    row.refuse_row("'" + row.name_of(field) + "' does not end with the assistant", "end it with an answer");
  return out;
}

void convert_hh(FormatRow& row) {
  Value chosen = turns_of(row, "chosen"), rejected = turns_of(row, "rejected");
  size_t same = 0;
  while (same + 1 < chosen.items.size() && same + 1 < rejected.items.size() &&
         chosen.items[same] == rejected.items[same])
    ++same;
  Value prompt = Value::list();
  prompt.items.assign(chosen.items.begin(), chosen.items.begin() + std::ptrdiff_t(same));
  for (Value* const answer : {&chosen, &rejected})
    answer->items.erase(answer->items.begin(), answer->items.begin() + std::ptrdiff_t(same));
  row.set("prompt", std::move(prompt));
  row.set("chosen", std::move(chosen));
  row.set("rejected", std::move(rejected));
}

}  // namespace

extern const RowFormat hh_format{"hh", hh_fields, convert_hh};

}  // namespace easydel::data
