#include "easydel/data/saved_columns.h"

#include <algorithm>

#include "easydel/base/error.h"

namespace easydel::data {
namespace {

struct Answer {
  std::vector<int32_t> prompt, answer;
};

// A sequence of a pair, split before its first learned token.
Answer split(const Example& example, size_t begin, size_t length) {
  size_t prompt = 0;
  while (prompt < length && example.labels[begin + prompt] == no_label) ++prompt;
  prompt = prompt == length ? length : prompt + 1;  // labels are shifted
  const auto at = example.tokens.begin() + static_cast<std::ptrdiff_t>(begin);
  const auto end = at + static_cast<std::ptrdiff_t>(length), middle = at + static_cast<std::ptrdiff_t>(prompt);
  return {{at, middle}, {middle, end}};
}

size_t begin_of(const SavedRow& row, size_t index) {
  size_t begin = 0;
  for (size_t i = 0; i < index; ++i) begin += size_t(row.example.lengths.at(i));
  return begin;
}

Answer sequence(const SavedRow& row, size_t index) {
  return split(row.example, begin_of(row, index), size_t(row.example.lengths.at(index)));
}

std::vector<int32_t> whole(const SavedRow& row, size_t index) {
  const auto begin = row.example.tokens.begin() + static_cast<std::ptrdiff_t>(begin_of(row, index));
  return {begin, begin + row.example.lengths.at(index)};
}

}  // namespace

std::vector<int32_t> saved_tokens(const SavedRow& row) { return row.example.tokens; }
std::vector<int32_t> saved_attention_mask(const SavedRow& row) {
  return std::vector<int32_t>(row.example.tokens.size(), 1);
}
std::vector<int32_t> saved_lengths(const SavedRow& row) { return row.example.lengths; }

std::vector<int32_t> saved_labels(const SavedRow& row) { return row.example.unshifted_labels(row.shifted); }

std::vector<float> saved_weights(const SavedRow& row) {
  return row.example.find(loss_weights) ? row.example.unshifted_weights(row.shifted) : std::vector<float>();
}

std::vector<float> saved_next_weights(const SavedRow& row) {
  const Column* const weights = row.example.find(loss_weights);
  std::vector<float> out;
  if (!weights || !row.shifted) return out;
  size_t end = 0;
  for (const int32_t length : row.example.lengths) {
    end += size_t(length);
    out.push_back(std::get<std::vector<float>>(weights->values)[end - 1]);
  }
  if (std::ranges::all_of(out, [](float weight) { return weight == 1; })) out.clear();
  return out;
}

std::vector<int32_t> saved_mark(const SavedRow& row) {
  const Column* const mark = row.example.find(answer_is_good);
  check(mark, "an answer that is neither good nor bad");
  return {int32_t(std::get<std::vector<int64_t>>(mark->values)[0])};
}

std::vector<float> saved_margin(const SavedRow& row) {
  const Column* const margin = row.example.find(pair_margin);
  return margin ? std::get<std::vector<float>>(margin->values) : std::vector<float>();
}

std::vector<int32_t> saved_next_labels(const SavedRow& row) {
  std::vector<int32_t> out;
  size_t end = 0;
  for (const int32_t length : row.example.lengths) {
    end += size_t(length);
    out.push_back(row.example.labels[end - 1]);
  }
  return out;
}

std::vector<int32_t> saved_prompt(const SavedRow& row) {
  std::vector<int32_t> prompt = sequence(row, 0).prompt;
  if (prompt != sequence(row, 1).prompt)
    refuse(row.where, str("max_length cut the two prompts of pair ", row.number, " differently, and a row has one"),
           "cut the ends (truncation_mode: keep_start), or set max_prompt_length");
  return prompt;
}
std::vector<int32_t> saved_chosen(const SavedRow& row) { return sequence(row, 0).answer; }
std::vector<int32_t> saved_rejected(const SavedRow& row) { return sequence(row, 1).answer; }
std::vector<int32_t> saved_third(const SavedRow& row) {
  return row.example.lengths.size() > 2 ? sequence(row, 2).answer : std::vector<int32_t>();
}
std::vector<int32_t> saved_first_prompt(const SavedRow& row) { return sequence(row, 0).prompt; }
std::vector<int32_t> saved_first_whole(const SavedRow& row) { return whole(row, 0); }
std::vector<int32_t> saved_second_whole(const SavedRow& row) { return whole(row, 1); }

}  // namespace easydel::data
