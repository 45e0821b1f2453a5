#include "easydel/data/example.h"

#include <algorithm>

#include "easydel/base/error.h"

namespace easydel::data {

size_t Column::size() const {
  return std::visit([](const auto& list) { return list.size(); }, values);
}

int64_t Example::labelled() const {
  int64_t count = 0;
  for (const int32_t label : labels) count += label != no_label;
  return count;
}

void Example::add_sequence(std::span<const int32_t> ids, std::span<const uint8_t> learn) {
  check(learn.empty() || learn.size() == ids.size(), "a mask of ", learn.size(), " for ", ids.size(), " tokens");
  tokens.insert(tokens.end(), ids.begin(), ids.end());
  labels.reserve(labels.size() + ids.size());
  for (size_t i = 1; i < ids.size(); ++i) labels.push_back(learn.empty() || learn[i] ? ids[i] : no_label);
  if (!ids.empty()) labels.push_back(no_label);
  lengths.push_back(int32_t(ids.size()));
}

void Example::add_unshifted(std::span<const int32_t> ids, std::span<const uint8_t> learn) {
  check(learn.empty() || learn.size() == ids.size(), "a mask of ", learn.size(), " for ", ids.size(), " tokens");
  tokens.insert(tokens.end(), ids.begin(), ids.end());
  labels.reserve(labels.size() + ids.size());
  for (size_t i = 0; i < ids.size(); ++i) labels.push_back(learn.empty() || learn[i] ? ids[i] : no_label);
  lengths.push_back(int32_t(ids.size()));
}

std::vector<int32_t> Example::unshifted_labels(bool shifted) const {
  if (!shifted) return labels;
  std::vector<int32_t> out(tokens.size(), no_label);
  size_t begin = 0;
  for (const int32_t length : lengths) {
    for (size_t i = begin + 1; i < begin + size_t(length); ++i) out[i] = labels[i - 1];
    begin += size_t(length);
  }
  return out;
}

std::vector<float> Example::unshifted_weights(bool shifted) const {
  const Column* const weights = find(loss_weights);
  if (!weights) return std::vector<float>(tokens.size(), 1);
  const auto& given = std::get<std::vector<float>>(weights->values);
  if (!shifted) return given;
  std::vector<float> out(tokens.size(), 1);
  size_t begin = 0;
  for (const int32_t length : lengths) {
    for (size_t i = begin + 1; i < begin + size_t(length); ++i) out[i] = given[i - 1];
    begin += size_t(length);
  }
  return out;
}

void Example::set(Column column) {
  const size_t described = column.per == Column::Per::token      ? tokens.size()
                           : column.per == Column::Per::sequence ? lengths.size()
                           : column.per == Column::Per::list     ? column.size()
                                                                 : 1;
  check(column.size() == described, "column ", column.name, " has ", column.size(), " numbers for ", described);
  const auto found = std::ranges::find(columns, column.name, &Column::name);
  if (found == columns.end())
    columns.push_back(std::move(column));
  else
    *found = std::move(column);
}

const Column* Example::find(std::string_view name) const {
  const auto found = std::ranges::find(columns, name, &Column::name);
  return found == columns.end() ? nullptr : &*found;
}

}  // namespace easydel::data
