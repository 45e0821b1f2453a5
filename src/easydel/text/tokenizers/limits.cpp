// The arithmetic of tokenizers' utils/truncation.rs and utils/padding.rs.
#include "easydel/text/tokenizers/limits.h"

#include <algorithm>
#include <iterator>
#include <type_traits>

#include "easydel/text/tokenizers/json_fields.h"

namespace easydel::text {
namespace {

Encoding part_of(const Encoding& whole, int64_t from, int64_t to) {
  auto cut = [&](const auto& list) {
    return std::remove_cvref_t<decltype(list)>(list.begin() + from, list.begin() + to);
  };
  return {cut(whole.ids), cut(whole.tokens), cut(whole.offsets), cut(whole.special_tokens_mask), cut(whole.type_ids)};
}

void shorten(Encoding& encoding, int64_t length, int64_t stride, Side cut) {
  auto size = int64_t(encoding.ids.size());
  if (length >= size) return;
  if (length > 0 && stride >= length)
    refuse("tokenizer.json",
           str("the stride ", stride, " is not less than the ", length, " tokens that there is room for"),
           "lower truncation.stride");
  Encoding whole = std::move(encoding);
  encoding = {};
  if (length == 0) {
    encoding.overflowing.push_back(std::move(whole));
    return;
  }
  std::vector<Encoding> parts;
  for (int64_t at = 0;; at += length - stride) {
    int64_t from = cut == Side::right ? at : std::max<int64_t>(0, size - at - length);
    int64_t to = cut == Side::right ? std::min(size, at + length) : size - at;
    parts.push_back(part_of(whole, from, to));
    if (cut == Side::right ? to == size : from == 0) break;
  }
  encoding = std::move(parts[0]);
  encoding.overflowing.assign(std::make_move_iterator(parts.begin() + 1), std::make_move_iterator(parts.end()));
}

Side read_side(const Value& node) {
  std::string name = string_field(node, "direction", "Right");
  if (name == "Right") return Side::right;
  if (name == "Left") return Side::left;
  refuse("tokenizer.json", "the direction '" + name + "' is not known", "known: Left, Right");
}

int64_t length_in(const Value& value, std::string_view key) {
  auto number = value.as_int();
  if (number && *number >= 0 && *number < 1 << 30) return *number;
  refuse("tokenizer.json", str("'", key, "' is not a length"), fetch_tokenizer_again);
}

}  // namespace

void Truncation::apply(std::vector<Encoding>& parts, int64_t added) const {
  int64_t room = max_length - added, total = 0;
  if (room < 0) return;
  for (const Encoding& part : parts) total += int64_t(part.ids.size());
  if (room == 0) {
    for (Encoding& part : parts) shorten(part, 0, stride, direction);
    return;
  }
  if (total <= room) return;
  if (strategy == Strategy::longest_first) {
    if (parts.size() == 1) return shorten(parts[0], room, stride, direction);
    auto first = int64_t(parts[0].ids.size()), second = int64_t(parts[1].ids.size());
    int64_t smaller = std::min(first, second), larger = smaller > room ? smaller : std::max(smaller, room - smaller);
    if (smaller + larger > room) {
      smaller = room / 2;
      larger = smaller + room % 2;
    }
    shorten(parts[0], first > second ? larger : smaller, stride, direction);
    shorten(parts[1], first > second ? smaller : larger, stride, direction);
    return;
  }
  size_t index = strategy == Strategy::only_first ? 0 : 1;
  if (index >= parts.size())
    refuse("tokenizer.json", "truncation is for the second text, and there is none",
           "give a pair, or change truncation.strategy");
  int64_t left = int64_t(parts[index].ids.size()) - (total - room);
  if (left <= 0)
    refuse("tokenizer.json", str("a text is too short to bring ", total, " tokens down to ", room),
           "raise truncation.max_length");
  shorten(parts[index], left, stride, direction);
}

void Padding::apply(Encoding& encoding) const {
  int64_t target = length.value_or(int64_t(encoding.ids.size()));
  if (multiple_of > 0 && target % multiple_of) target += multiple_of - target % multiple_of;
  lengthen(encoding, target);
}

void Padding::lengthen(Encoding& encoding, int64_t target) const {
  for (Encoding& rest : encoding.overflowing) lengthen(rest, target);
  auto size = int64_t(encoding.ids.size());
  if (target <= size) return;
  auto pad = [&](auto& list, const auto& with) {
    list.insert(direction == Side::left ? list.begin() : list.end(), size_t(target - size), with);
  };
  pad(encoding.ids, id);
  pad(encoding.tokens, token);
  pad(encoding.offsets, std::pair<int64_t, int64_t>(0, 0));
  pad(encoding.special_tokens_mask, uint8_t{1});
  pad(encoding.type_ids, type);
}

Truncation read_truncation(const Value& node) {
  Truncation out;
  const Value *length = node.find("max_length"), *stride = node.find("stride");
  if (!length || !stride)
    refuse("tokenizer.json", "'truncation' lacks its 'max_length' or its 'stride'", fetch_tokenizer_again);
  out.max_length = length_in(*length, "truncation.max_length");
  out.stride = length_in(*stride, "truncation.stride");
  out.direction = read_side(node);
  std::string name = string_field(node, "strategy");
  if (name == "OnlyFirst")
    out.strategy = Truncation::Strategy::only_first;
  else if (name == "OnlySecond")
    out.strategy = Truncation::Strategy::only_second;
  else if (name != "LongestFirst")
    refuse("tokenizer.json", "the truncation strategy '" + name + "' is not known",
           "known: LongestFirst, OnlyFirst, OnlySecond");
  return out;
}

Padding read_padding(const Value& node) {
  Padding out;
  const Value* strategy = node.find("strategy");
  if (const Value* fixed = strategy ? strategy->find("Fixed") : nullptr)
    out.length = length_in(*fixed, "padding.strategy.Fixed");
  else if (!strategy || !strategy->is_text() || strategy->scalar != "BatchLongest")
    refuse("tokenizer.json", "the padding strategy is not known", R"(known: "BatchLongest", {"Fixed": 512})");
  if (const Value* multiple = node.find("pad_to_multiple_of"); !is_absent(multiple))
    out.multiple_of = length_in(*multiple, "padding.pad_to_multiple_of");
  out.direction = read_side(node);
  out.id = static_cast<TokenId>(int_field(node, "pad_id"));
  out.type = uint8_t(int_field(node, "pad_type_id"));
  out.token = string_field(node, "pad_token");
  return out;
}

}  // namespace easydel::text
