#include "easydel/data/token_rows.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string_view>

#include "easydel/base/error.h"
#include "easydel/data/example.h"

namespace easydel::data {
namespace {

class NumberLists {
 public:
  explicit NumberLists(const Row& row) : row_(row) {}

  // The numbers of a field; empty: it is not there.
  std::vector<int32_t> numbers(const std::string& name, int64_t low, const char* what) const {
    std::vector<int32_t> out;
    const Value* const list = list_of(name);
    if (!list) return out;
    out.reserve(list->items.size());
    for (const Value& item : list->items) {
      const auto number = item.as_int();
      if (!number || *number < low || *number > INT32_MAX) wrong(name, item, what);
      out.push_back(int32_t(*number));
    }
    return out;
  }

  std::vector<uint8_t> mask(const std::string& name) const {
    std::vector<uint8_t> out;
    const Value* const list = list_of(name);
    if (!list) return out;
    for (const Value& item : list->items) {
      const auto number = item.as_int();
      const auto yes = item.as_bool();
      if (!yes && number != 0 && number != 1) wrong(name, item, "is neither 0 nor 1");
      out.push_back(yes ? *yes : *number == 1);
    }
    return out;
  }

  std::vector<float> weights(const std::string& name) const {
    std::vector<float> out;
    const Value* const list = list_of(name);
    if (!list) return out;
    for (const Value& item : list->items) {
      const auto number = item.as_double();
      if (!number || !std::isfinite(*number) || *number < 0) wrong(name, item, "is not a weight from 0");
      out.push_back(float(*number));
    }
    return out;
  }

  template <class T>
  void same_length(const std::string& name, const std::vector<T>& list, size_t tokens) const {
    if (!list.empty() && list.size() != tokens)
      refuse(row_.where, str("'", name, "' has ", list.size(), " numbers for ", tokens, " tokens"),
             "give one for each token");
  }

 private:
  const Value* list_of(const std::string& name) const {
    const Value* const value = row_.fields.find(name);
    if (!value || value->is_null()) return nullptr;
    if (!value->is_list()) refuse(row_.where, "field '" + name + "' is not a list of numbers", "as in [1, 2, 3]");
    return value;
  }
  [[noreturn]] void wrong(const std::string& name, const Value& item, const char* what) const {
    refuse(row_.where, str("field '", name, "' holds ", to_yaml_flow(item), ", which ", what));
  }

  const Row& row_;
};

template <class T>
void keep(std::vector<T>& list, const std::vector<uint8_t>& kept) {
  if (list.empty()) return;
  size_t out = 0;
  for (size_t i = 0; i < list.size(); ++i)
    if (kept[i]) list[out++] = list[i];
  list.resize(out);
}

bool has_ids(const Row& row, const std::string& name) {
  const Value* const value = row.fields.find(name);
  return value && value->is_list() && !value->items.empty() && value->items[0].as_int();
}

// The name under which the row has the ids of an answer; empty: it has none.
std::string answer_field(const Row& row, std::string_view field) {
  const auto names = std::ranges::find(answer_fields, field, [](const auto& pair) { return pair.first; });
  for (const char* name : {names->first, names->second})
    if (has_ids(row, name)) return name;
  return "";
}

}  // namespace

std::string ids_field(const Row& row, const std::string& tokens_field) {
  for (const std::string& name : {tokens_field, std::string("input_ids")})
    if (has_ids(row, name)) return name;
  return "";
}

bool has_token_pair(const Row& row) {
  return !answer_field(row, "chosen_ids").empty() && !answer_field(row, "rejected_ids").empty();
}

bool has_token_completion(const Row& row) {
  return !answer_field(row, "prompt_ids").empty() && !answer_field(row, "completion_ids").empty();
}

TokenAnswers token_answers(const Row& row) {
  const NumberLists reader(row);
  TokenAnswers out;
  const auto numbers = [&](const char* field) {
    const std::string name = answer_field(row, field);
    return name.empty() ? std::vector<int32_t>() : reader.numbers(name, 0, "is not a token id");
  };
  out.prompt = numbers("prompt_ids"), out.completion = numbers("completion_ids");
  out.chosen = numbers("chosen_ids"), out.rejected = numbers("rejected_ids"), out.reference = numbers("reference_ids");
  return out;
}

TokenRow token_row(const Row& row, const std::string& ids_field) {
  const NumberLists reader(row);
  TokenRow out;
  out.ids = reader.numbers(ids_field, 0, "is not a token id");
  out.labels = reader.numbers("labels", no_label, "is neither a token id nor -100");
  out.lengths = reader.numbers("seq_lengths", 1, "is not a length");
  out.next_labels = reader.numbers("next_labels", no_label, "is neither a token id nor -100");
  out.weights = reader.weights("weights");
  out.next_weights = reader.weights("next_weights");
  const size_t tokens = out.ids.size();
  reader.same_length("labels", out.labels, tokens);
  reader.same_length("weights", out.weights, tokens);
  for (const char* name : {"completion_mask", "assistant_masks"}) {
    const std::vector<uint8_t> mask = reader.mask(name);
    reader.same_length(name, mask, tokens);
    if (mask.empty()) continue;
    if (out.labels.empty()) out.labels = out.ids;
    for (size_t i = 0; i < tokens; ++i)
      if (!mask[i]) out.labels[i] = no_label;
  }
  if (!out.lengths.empty() && std::accumulate(out.lengths.begin(), out.lengths.end(), int64_t{0}) != int64_t(tokens))
    refuse(row.where, str("'seq_lengths' do not add up to the row's ", tokens, " tokens"));
  if (!out.next_labels.empty() && out.next_labels.size() != std::max<size_t>(out.lengths.size(), 1))
    refuse(row.where, "'next_labels' has another number of entries than 'seq_lengths'");
  if (!out.next_weights.empty() && out.next_weights.size() != out.next_labels.size())
    refuse(row.where, "'next_weights' has another number of entries than 'next_labels'");
  const std::vector<uint8_t> attended = reader.mask("attention_mask");
  reader.same_length("attention_mask", attended, tokens);
  if (std::ranges::find(attended, 0) == attended.end()) return out;
  if (!out.lengths.empty())
    refuse(row.where, "the row has padding (attention_mask 0) and seq_lengths", "leave the padding out");
  keep(out.labels, attended);
  keep(out.weights, attended);
  keep(out.ids, attended);
  return out;
}

}  // namespace easydel::data
