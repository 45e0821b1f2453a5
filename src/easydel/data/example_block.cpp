#include "easydel/data/example_block.h"

#include <algorithm>
#include <bit>
#include <cstdio>

#include "easydel/base/error.h"

namespace easydel::data {
namespace {

constexpr size_t tokens_of_short_example = 8;  // a block of shorter ones is full before its tokens are

// The label that the rule gives token i; no_label: none.
int32_t label_by(LabelRule rule, const Example& example, size_t i) {
  if (rule == LabelRule::same) return example.tokens[i];
  return i + 1 < example.tokens.size() ? example.tokens[i + 1] : no_label;
}

int64_t exceptions_to(LabelRule rule, const Example& example) {
  int64_t count = 0;
  for (size_t i = 0; i < example.labels.size(); ++i)
    count += example.labels[i] != no_label && example.labels[i] != label_by(rule, example, i);
  return count;
}

// Where the numbers of an example begin and end in a column of a block.
std::pair<size_t, size_t> range_in(Column::Per per, std::span<const uint32_t> tokens,
                                   std::span<const uint32_t> sequences, size_t example) {
  if (per == Column::Per::token) return {tokens[example], tokens[example + 1]};
  if (per == Column::Per::sequence) return {sequences[example], sequences[example + 1]};
  return {example, example + 1};
}

}  // namespace

int64_t BlockView::tokens_of(int64_t example) const {
  return int64_t(token_offsets[size_t(example) + 1]) - token_offsets[size_t(example)];
}

int64_t BlockView::labels_of(int64_t example, int64_t begin, int64_t end) const {
  const size_t first = token_offsets[size_t(example)];
  int64_t count = 0;
  size_t place = first + size_t(begin);
  const size_t last = first + size_t(end);
  while (place < last && place % 8 != 0) count += has_label(place++);
  for (; place + 8 <= last; place += 8) count += std::popcount(learned[place / 8]);
  while (place < last) count += has_label(place++);
  return count;
}

int32_t BlockView::token(size_t place) const {
  return narrow_tokens.empty() ? int32_t(wide_tokens[place]) : int32_t(narrow_tokens[place]);
}

void BlockView::read(int64_t example, int64_t begin, int64_t end, Example& out) const {
  const size_t base = token_offsets[size_t(example)], all = token_offsets[size_t(example) + 1];
  const size_t first = base + size_t(begin), last = base + size_t(end);
  const auto copy = [&](const auto tokens) {
    out.tokens.assign(tokens.begin() + std::ptrdiff_t(first), tokens.begin() + std::ptrdiff_t(last));
  };
  narrow_tokens.empty() ? copy(wide_tokens) : copy(narrow_tokens);
  const bool next = LabelRule(rules[size_t(example)]) == LabelRule::next;
  out.labels.assign(last - first, no_label);
  for (size_t place = first; place < last; ++place)
    if (has_label(place) && (!next || place + 1 < all)) out.labels[place - first] = token(place + (next ? 1 : 0));
  auto exception = std::ranges::lower_bound(exception_places, uint32_t(first));
  for (; exception != exception_places.end() && *exception < last; ++exception)
    out.labels[*exception - first] = exception_labels[size_t(exception - exception_places.begin())];
  for (const BlockColumn& column : columns) {
    if (!column.present[size_t(example)]) continue;
    auto [from, to] = range_in(column.per, token_offsets, sequence_offsets, size_t(example));
    if (column.per == Column::Per::token) from = first, to = last;
    std::visit(
        [&](const auto& values) {
          const auto part = values.subspan(from, to - from);
          using T = std::remove_const_t<typename std::decay_t<decltype(values)>::element_type>;
          out.columns.push_back({column.name, column.per, std::vector<T>(part.begin(), part.end())});
        },
        column.values);
  }
}

Example BlockView::at(int64_t example) const {
  Example out;
  read(example, 0, tokens_of(example), out);
  const auto own = lengths.subspan(sequence_offsets[size_t(example)],
                                   sequence_offsets[size_t(example) + 1] - sequence_offsets[size_t(example)]);
  out.lengths.assign(own.begin(), own.end());
  return out;
}

Example BlockView::slice(int64_t example, int64_t begin, int64_t end) const {
  Example out;
  read(example, begin, end, out);
  out.lengths = {int32_t(end - begin)};
  return out;
}

void ExampleDigest::add(const Example& example) {  // FNV-1a over 32-bit words
  for (const auto* words : {&example.tokens, &example.labels, &example.lengths}) {
    add(uint64_t(words->size()));
    for (const int32_t word : *words) add(uint64_t(uint32_t(word)));
  }
  if (const Column* const weights = example.find(loss_weights))
    for (const float weight : std::get<std::vector<float>>(weights->values))
      add(uint64_t(std::bit_cast<uint32_t>(weight)));
}

std::string ExampleDigest::text() const {
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(value));
  return digits;
}

ExampleBlock::ExampleBlock(size_t tokens) : capacity_(tokens) {
  wide_.reserve(tokens);
  learned_.reserve(tokens / 8);
}

void ExampleBlock::add(const Example& example) {
  check(example.tokens.size() == example.labels.size(), "an example of ", example.tokens.size(), " tokens and ",
        example.labels.size(), " labels");
  add_labels(example);
  for (const int32_t token : example.tokens) {
    wide_.push_back(uint32_t(token));
    largest_token_ = std::max(largest_token_, uint32_t(token));
  }
  lengths_.insert(lengths_.end(), example.lengths.begin(), example.lengths.end());
  check(wide_.size() <= UINT32_MAX, "a block of ", wide_.size(), " tokens");
  token_offsets_.push_back(uint32_t(wide_.size()));
  sequence_offsets_.push_back(uint32_t(lengths_.size()));
  add_columns(example);
}

// Comes before the example's tokens are added.
void ExampleBlock::add_labels(const Example& example) {
  const size_t first = wide_.size();
  const int64_t not_next = exceptions_to(LabelRule::next, example);
  const bool same = not_next > 0 && exceptions_to(LabelRule::same, example) < not_next;
  const LabelRule rule = same ? LabelRule::same : LabelRule::next;
  rules_.push_back(uint8_t(rule));
  learned_.resize((first + example.tokens.size() + 7) / 8, 0);
  for (size_t i = 0; i < example.labels.size(); ++i) {
    if (example.labels[i] == no_label) continue;
    const size_t place = first + i;
    learned_[place / 8] |= uint8_t(1 << place % 8);
    if (example.labels[i] == label_by(rule, example, i)) continue;
    exception_places_.push_back(uint32_t(place));
    exception_labels_.push_back(example.labels[i]);
  }
}

void ExampleBlock::add_columns(const Example& example) {
  const size_t number = rules_.size() - 1;
  for (const Column& column : example.columns) {
    check(column.per != Column::Per::list, "column ", column.name, " is a list, which blocks do not store");
    auto found = std::ranges::find(columns_, column.name, &OwnColumn::name);
    if (found == columns_.end()) {
      columns_.push_back({column.name, column.per, {}, std::vector<uint8_t>(number, 0)});
      found = std::prev(columns_.end());
      std::visit([&](const auto& list) { found->values = std::decay_t<decltype(list)>{}; }, column.values);
    }
    check(found->per == column.per && found->values.index() == column.values.index(), "column ", column.name,
          " is not alike in all examples");
    const auto [from, to] = range_in(column.per, token_offsets_, sequence_offsets_, number);
    check(column.size() == to - from, "column ", column.name, " has ", column.size(), " numbers for ", to - from);
    std::visit(
        [&](const auto& list) {
          auto& own = std::get<std::decay_t<decltype(list)>>(found->values);
          own.resize(from, 0);
          own.insert(own.end(), list.begin(), list.end());
        },
        column.values);
    found->present.push_back(1);
  }
  for (OwnColumn& own : columns_) {
    if (own.present.size() > number) continue;
    own.present.push_back(0);
    const size_t end = range_in(own.per, token_offsets_, sequence_offsets_, number).second;
    std::visit([&](auto& values) { values.resize(end, 0); }, own.values);
  }
}

bool ExampleBlock::is_full() const {
  return wide_.size() >= capacity_ || rules_.size() >= std::max<size_t>(capacity_ / tokens_of_short_example, 1);
}

void ExampleBlock::seal() {
  if (largest_token_ <= UINT16_MAX) {
    narrow_.assign(wide_.begin(), wide_.end());
    wide_ = {};
  }
  wide_.shrink_to_fit();
  for (auto* bytes : {&learned_, &rules_}) bytes->shrink_to_fit();
  for (auto* numbers : {&token_offsets_, &sequence_offsets_, &exception_places_}) numbers->shrink_to_fit();
  for (auto* numbers : {&lengths_, &exception_labels_}) numbers->shrink_to_fit();
  for (OwnColumn& column : columns_) {
    column.present.shrink_to_fit();
    std::visit([](auto& values) { values.shrink_to_fit(); }, column.values);
  }
}

BlockView ExampleBlock::view() const {
  BlockView out{narrow_,  wide_,  learned_,          token_offsets_,    sequence_offsets_,
                lengths_, rules_, exception_places_, exception_labels_, {}};
  for (const OwnColumn& column : columns_) {
    BlockColumn& one = out.columns.emplace_back();
    one.name = column.name, one.per = column.per, one.present = column.present;
    std::visit([&](const auto& values) { one.values = std::span(values); }, column.values);
  }
  return out;
}

}  // namespace easydel::data
