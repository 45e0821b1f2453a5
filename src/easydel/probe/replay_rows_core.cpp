#include "easydel/probe/replay_rows.h"

#include "easydel/base/error.h"

namespace easydel::probe {
namespace {

std::vector<int64_t> integers(const Value& list, const std::string& where) {
  std::vector<int64_t> out;
  out.reserve(list.items.size());
  for (const Value& item : list.items) {
    const auto number = item.as_bool() ? std::optional<int64_t>(*item.as_bool()) : item.as_int();
    if (!number) refuse(where, "holds '" + item.scalar + "' where a whole number belongs");
    out.push_back(*number);
  }
  return out;
}

}  // namespace

RecordedRows rows_of(const Value& line, const std::string& name, const std::string& where) {
  RecordedRows out;
  const Value* value = line.find(name);
  if (!value) return out;
  for (const Value& row : value->items) out.push_back(integers(row, where + ": " + name));
  return out;
}

RecordedRows required_rows(const Value& line, const std::string& name, const std::string& where) {
  RecordedRows out = rows_of(line, name, where);
  if (out.empty()) refuse(where, "needs " + name);
  return out;
}

std::vector<int64_t> integers_of(const Value& line, const std::string& name, const std::string& where) {
  const Value* value = line.find(name);
  return value ? integers(*value, where + ": " + name) : std::vector<int64_t>();
}

std::vector<float> floats_of(const Value& line, const std::string& name) {
  std::vector<float> out;
  if (const Value* value = line.find(name))
    for (const Value& item : value->items) out.push_back(float(item.as_double().value_or(0)));
  return out;
}

data::Example example_of(const std::vector<int64_t>& ids, const std::vector<int64_t>* attended,
                         const std::vector<int64_t>& labels, const std::vector<int64_t>* positions) {
  data::Example out;
  std::vector<int64_t> kept;
  for (size_t i = 0; i < ids.size(); ++i)
    if (!attended || (*attended)[i]) kept.push_back(int64_t(i));
  for (size_t k = 0; k < kept.size(); ++k) {
    const auto i = size_t(kept[k]);
    const bool begins = k == 0 || (positions && (*positions)[i] == 0);
    if (begins) out.lengths.push_back(0);
    ++out.lengths.back();
    out.tokens.push_back(int32_t(ids[i]));
    const bool last = k + 1 == kept.size() || (positions && (*positions)[size_t(kept[k + 1])] == 0);
    out.labels.push_back(last ? data::no_label : int32_t(labels[size_t(kept[k + 1])]));
  }
  return out;
}

std::vector<int64_t> masked_labels(const std::vector<int64_t>& ids, const std::vector<int64_t>& learned) {
  std::vector<int64_t> out = ids;
  for (size_t i = 0; i < out.size(); ++i)
    if (!learned[i]) out[i] = data::no_label;
  return out;
}

void append(data::Example& to, const data::Example& more) {
  to.tokens.insert(to.tokens.end(), more.tokens.begin(), more.tokens.end());
  to.labels.insert(to.labels.end(), more.labels.begin(), more.labels.end());
  to.lengths.insert(to.lengths.end(), more.lengths.begin(), more.lengths.end());
}

}  // namespace easydel::probe
