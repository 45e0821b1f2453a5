#include "easydel/server/client_text.h"

#include <algorithm>
#include <set>
#include <utility>

#include "easydel/base/error.h"

namespace easydel::server {
namespace {

// The private-use characters of the basic plane, which have three bytes each in UTF-8.
constexpr uint32_t first_private = 0xe000, last_private = 0xf8ff;

std::string utf8_of(uint32_t c) {
  return {char(0xe0 | (c >> 12)), char(0x80 | ((c >> 6) & 0x3f)), char(0x80 | (c & 0x3f))};
}

std::string escape_of(uint32_t c) {
  std::string out = "\\u";
  for (int shift = 12; shift >= 0; shift -= 4) out += "0123456789abcdef"[(c >> shift) & 15];
  return out;
}

size_t character_bytes(unsigned char lead) { return lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4; }

std::vector<std::pair<std::string_view, int32_t>> keys_of(const std::vector<std::string>& texts) {
  std::vector<std::pair<std::string_view, int32_t>> out;
  for (const std::string& text : texts) out.emplace_back(text, int32_t(out.size()));
  return out;
}

// Whether the value is a list of content parts; then their texts.
std::vector<std::string*> texts_of_parts(Value& value) {
  std::vector<std::string*> out;
  if (!value.is_list()) return out;
  for (Value& part : value.items) {
    Value* const text = part.is_map() ? part.find("text") : nullptr;
    if (!text || !text->is_text()) return {};
    out.push_back(&text->scalar);
  }
  return out;
}

}  // namespace

ClientText::ClientText(std::shared_ptr<const std::vector<std::string>> special_texts,
                       const std::string& template_source)
    : special_texts_(std::move(special_texts)),
      special_(keys_of(*special_texts_)),
      used_(last_private - first_private + 1) {
  look_at(template_source);
}

void ClientText::look_at(const std::string& text) {
  for (size_t at = 0; at + 2 < text.size(); ++at) {
    const auto byte = [&](size_t i) { return uint32_t(uint8_t(text[at + i])); };
    if ((byte(0) & 0xf0) != 0xe0) continue;
    const uint32_t c = ((byte(0) & 15) << 12) | ((byte(1) & 63) << 6) | (byte(2) & 63);
    if (c >= first_private && c <= last_private) used_[c - first_private] = true;
  }
  for (size_t at = text.find("\\u"); at != std::string::npos; at = text.find("\\u", at + 2)) {
    uint32_t c = 0;
    for (size_t i = at + 2; i < std::min(at + 6, text.size()); ++i) {
      const size_t digit = std::string_view("0123456789abcdef").find(text[i]);
      c = digit == std::string_view::npos ? 0 : c * 16 + uint32_t(digit);
    }
    if (c >= first_private && c <= last_private) used_[c - first_private] = true;
  }
}

void ClientText::look_at(const Value& value) {
  if (value.is_text()) look_at(value.scalar);
  for (const Value& item : value.items) look_at(item);
  for (const auto& [name, member] : value.entries) {
    look_at(name);
    look_at(member);
  }
}

void ClientText::choose_mark() {
  const auto free = std::ranges::find(used_, false);
  if (free == used_.end())
    refuse("messages", "contain every private-use character", "leave one of U+E000 to U+F8FF out");
  const auto c = uint32_t(first_private + (free - used_.begin()));
  mark_ = utf8_of(c);
  escaped_mark_ = escape_of(c);
}

void ClientText::mark_strings(const std::vector<std::string*>& strings) {
  if (mark_.empty()) choose_mark();
  std::string joined;
  for (const std::string* const one : strings) joined += *one;
  // After the first character of each special token, so that it is cut wherever else it begins or ends.
  std::set<size_t> places;
  for (size_t at = 0; at < joined.size(); ++at) {
    size_t length = 0;
    const size_t first = character_bytes(uint8_t(joined[at]));
    if (special_.longest(joined, at, length) >= 0 && first < length) places.insert(at + first);
  }
  size_t end = joined.size();
  for (auto one = strings.rbegin(); one != strings.rend(); ++one) {
    const size_t begin = end - (*one)->size();
    while (!places.empty() && *places.rbegin() >= begin) {
      (*one)->insert(*places.rbegin() - begin, mark_);
      places.erase(std::prev(places.end()));
    }
    end = begin;
  }
}

void ClientText::mark(Value& value) {
  if (value.is_text()) return mark_strings({&value.scalar});
  if (const std::vector<std::string*> texts = texts_of_parts(value); texts.size() > 1) mark_strings(texts);
  for (Value& item : value.items) mark(item);
  for (auto& [name, member] : value.entries) {
    mark_strings({&name});
    mark(member);
  }
}

std::vector<size_t> ClientText::take_marks(std::string& text) const {
  std::vector<size_t> out;
  if (mark_.empty()) return out;
  std::string kept;
  for (size_t at = 0; at < text.size();) {
    const std::string_view rest = std::string_view(text).substr(at);
    const size_t marked = rest.starts_with(mark_)           ? mark_.size()
                          : rest.starts_with(escaped_mark_) ? escaped_mark_.size()
                                                            : 0;
    if (marked == 0) {
      kept += text[at++];
    } else {
      out.push_back(kept.size());
      at += marked;
    }
  }
  text = std::move(kept);
  return out;
}

}  // namespace easydel::server
