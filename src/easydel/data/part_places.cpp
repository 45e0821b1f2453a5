#include "easydel/data/part_places.h"

#include <algorithm>
#include <optional>

#include "easydel/base/error.h"
#include "easydel/data/learn_rules.h"
#include "easydel/text/unicode.h"

namespace easydel::data {
namespace {

constexpr char32_t first_private = 0xF0000, last_private = 0x10FFFD;
constexpr std::string_view blanks = " \t\r\n";

struct MarkedPart {
  size_t message, part;
  std::string text;
};

std::vector<MarkedPart> marked_parts(const Value& messages, const std::vector<size_t>& asked) {
  std::vector<MarkedPart> out;
  for (const size_t message : asked) {
    const Value* const parts = parts_of(messages.items[message]);
    for (size_t part = 0; parts && part < parts->items.size(); ++part) {
      const std::string* const text = text_of_part(parts->items[part]);
      if (text && !text->empty() && mark_of(parts->items[part])) out.push_back({message, part, *text});
    }
  }
  return out;
}

// Two characters for each part, which the text does not have.
class Borders {
 public:
  Borders(const std::u32string& text, size_t parts) {
    for (const char32_t c : text)
      if (c >= first_) first_ = c + 1;
    fit_ = first_ + 2 * parts <= last_private + 1;
  }
  bool fit() const { return fit_; }
  std::string of(size_t part, bool closes) const {
    const char32_t c = char32_t(first_ + 2 * part + (closes ? 1 : 0));
    return text::to_utf8({&c, 1});
  }
  // The part and whether it closes; nothing: another character.
  std::optional<std::pair<size_t, bool>> read(char32_t c) const {
    if (c < first_) return std::nullopt;
    return std::pair(size_t(c - first_) / 2, (c - first_) % 2 == 1);
  }

 private:
  char32_t first_ = first_private;
  bool fit_ = false;
};

// A text with borders around [begin, end) of each marked part. `inside`: at the ends of the text they are put inside of
// its blanks, which many templates cut off.
class BorderedText {
 public:
  explicit BorderedText(std::string text, bool inside) : text_(std::move(text)), words_end_(text_.size()) {
    if (!inside) return;
    words_begin_ = std::min(text_.find_first_not_of(blanks), text_.size());
    words_end_ = std::max(words_begin_, text_.find_last_not_of(blanks) + 1);  // npos + 1 is 0
  }
  void add(size_t begin, size_t end, const Borders& borders, size_t part) {
    for (const bool closes : {false, true}) {
      const size_t at = std::clamp(closes ? end : begin, words_begin_, words_end_);
      out_ += text_.substr(written_, at - written_);
      out_ += borders.of(part, closes);
      written_ = at;
    }
  }
  std::string text() const { return out_ + text_.substr(written_); }

 private:
  std::string text_, out_;
  size_t words_begin_ = 0, words_end_, written_ = 0;
};

// The messages as without_part_marks() gives them, with borders around their marked parts.
Value with_borders(const Value& messages, const std::vector<MarkedPart>& parts, const Borders& borders, bool inside) {
  Value out = messages;
  size_t next = 0;
  while (next < parts.size()) {
    const size_t message = parts[next].message;
    Value& content = *out.items[message].find("content");
    const bool is_joined =
        std::ranges::all_of(content.items, [](const Value& part) { return text_of_part(part) != nullptr; });
    std::string whole;
    for (const Value& part : content.items)
      if (const std::string* const text = text_of_part(part)) whole += *text;
    BorderedText joined(whole, inside);
    size_t at = 0;
    for (size_t part = 0; part < content.items.size(); ++part) {
      Value* const text = content.items[part].is_map() ? content.items[part].find("text") : nullptr;
      if (!text || !text->is_text()) continue;
      const size_t size = text->scalar.size();
      if (next < parts.size() && parts[next].message == message && parts[next].part == part) {
        joined.add(at, at + size, borders, next);
        BorderedText alone(text->scalar, inside);
        alone.add(0, size, borders, next);
        text->scalar = alone.text();
        ++next;
      }
      at += size;
    }
    if (is_joined) content = Value::text(joined.text());
  }
  return without_part_marks(out);
}

// Nothing: the template wrote another text because of the borders.
std::optional<std::vector<PartPlace>> places_between(const std::u32string& bordered, const std::u32string& text,
                                                     const std::vector<MarkedPart>& parts, const Borders& borders) {
  std::vector<PartPlace> out;
  std::vector<int64_t> begins(parts.size(), -1);
  int64_t at = 0;
  for (const char32_t c : bordered) {
    const auto border = borders.read(c);
    if (!border) {
      if (at == int64_t(text.size()) || text[size_t(at)] != c) return std::nullopt;
      ++at;
      continue;
    }
    const auto& [part, closes] = *border;
    if (part >= parts.size() || closes != (begins[part] >= 0)) return std::nullopt;
    if (closes) out.push_back({parts[part].message, parts[part].part, begins[part], at});
    begins[part] = closes ? -1 : at;
  }
  const bool all_closed = std::ranges::all_of(begins, [](int64_t begin) { return begin < 0; });
  if (at != int64_t(text.size()) || !all_closed) return std::nullopt;
  return out;
}

PartPlace place_by_text(const MarkedPart& part, const text::RenderedTurns& turns) {
  const auto& [first, last] = turns.characters.at(part.message);
  const auto found = turns.find(part.text, first, last);
  if (found && !turns.find(part.text, found->first + 1, last))
    return {part.message, part.part, found->first, found->second};
  std::string begin = part.text.substr(0, 40);
  begin.resize(text::valid_prefix(begin));  // not inside a character
  refuse("messages",
         found ? "the template changes the message with the part '" + begin + "', whose text it writes more than once"
               : "the template does not write the part '" + begin + "' as it is given",
         "its weight cannot be applied: mark the whole message instead");
}

}  // namespace

std::vector<PartPlace> part_places(const Value& messages, const text::RenderedTurns& turns,
                                   const std::vector<size_t>& asked, const RenderText& render) {
  const std::vector<MarkedPart> parts = marked_parts(messages, asked);
  if (parts.empty()) return {};
  const Borders borders(turns.text, parts.size());
  std::optional<std::vector<PartPlace>> out;
  for (const bool inside : {false, true}) {
    if (out || !borders.fit()) break;
    try {
      const Value bordered = with_borders(messages, parts, borders, inside);
      out = places_between(text::to_utf32(render(bordered)), turns.text, parts, borders);
    } catch (const UserError&) {  // the template refuses such a content
    }
  }
  if (!out) out.emplace();
  for (const MarkedPart& part : parts)
    if (std::ranges::none_of(
            *out, [&](const PartPlace& place) { return place.message == part.message && place.part == part.part; }))
      out->push_back(place_by_text(part, turns));
  return *out;
}

}  // namespace easydel::data
