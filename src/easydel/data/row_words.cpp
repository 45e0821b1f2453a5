#include "easydel/data/row_words.h"

#include <algorithm>

namespace easydel::data {
namespace {

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || (c & 0x80) != 0;
}

void add_words(const std::string& text, std::vector<std::string>& words) {
  std::string word;
  for (const char c : text) {
    if (is_word(c)) {
      word += c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c;
    } else if (!word.empty()) {
      words.push_back(std::exchange(word, {}));
    }
  }
  if (!word.empty()) words.push_back(std::move(word));
}

// Texts, and the contents of messages and of their parts.
void add_texts(const Value& value, std::vector<std::string>& words) {
  if (value.is_text()) add_words(value.scalar, words);
  for (const Value& item : value.items) add_texts(item, words);
  for (const char* field : {"content", "text"})
    if (const Value* const child = value.is_map() ? value.find(field) : nullptr) add_texts(*child, words);
}

uint64_t mixed(uint64_t hash, const std::string& word) {
  for (const char c : word) hash = (hash ^ uint8_t(c)) * 0x100000001b3;
  return (hash ^ (hash >> 32)) * 0x9E3779B97F4A7C15;
}

}  // namespace

std::vector<std::string> words_of(const TypedRow& row) {
  std::vector<std::string> out;
  for (const Value* part :
       {&row.text, &row.segments, &row.prompt, &row.completion, &row.chosen, &row.rejected, &row.reference,
        &row.completions, &row.query, &row.positive, &row.negatives, &row.text_pair})
    add_texts(*part, out);
  const auto add_ids = [&](const std::vector<int32_t>& ids) {
    for (const int32_t id : ids) out.push_back(std::to_string(id));
  };
  if (row.tokens) add_ids(row.tokens->ids);
  if (row.answers)
    for (const auto* ids : {&row.answers->prompt, &row.answers->completion, &row.answers->chosen,
                            &row.answers->rejected, &row.answers->reference})
      add_ids(*ids);
  return out;
}

uint64_t digest_of_words(const TypedRow& row) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const std::string& word : words_of(row)) hash = mixed(hash, word);
  return hash;
}

std::vector<uint64_t> WordRuns::runs_of(const TypedRow& row) const {
  const std::vector<std::string> words = words_of(row);
  std::vector<uint64_t> out;
  for (int64_t i = 0; i + count_ <= int64_t(words.size()); ++i) {
    uint64_t hash = 0xcbf29ce484222325;
    for (int64_t k = 0; k < count_; ++k) hash = mixed(hash, words[size_t(i + k)]);
    out.push_back(hash);
  }
  return out;
}

void WordRuns::add(const TypedRow& row) {
  for (const uint64_t run : runs_of(row)) runs_.insert(run);
}

bool WordRuns::shares(const TypedRow& row) const {
  return std::ranges::any_of(runs_of(row), [&](uint64_t run) { return runs_.contains(run); });
}

uint64_t WordRuns::digest() const {
  uint64_t out = uint64_t(count_);
  for (const uint64_t run : runs_) out += run;  // they have no order
  return out;
}

}  // namespace easydel::data
