// Converts recorded micro-batches (padded rows, or flat ones with position_ids) to examples.
#include <map>

#include "easydel/base/error.h"
#include "easydel/data/byte_stream.h"
#include "easydel/probe/replay_case.h"

namespace easydel::probe {
namespace {

using Rows = std::vector<std::vector<int64_t>>;

std::vector<int64_t> integers(const Value& list, const std::string& where) {
  std::vector<int64_t> out;
  out.reserve(list.items.size());
  for (const Value& item : list.items) {
    const auto number = item.as_int();
    if (!number) refuse(where, "holds '" + item.scalar + "' where a whole number belongs");
    out.push_back(*number);
  }
  return out;
}

Rows rows_of(const Value& line, const std::string& name, const std::string& where) {
  Rows out;
  const Value* value = line.find(name);
  if (!value) return out;
  for (const Value& row : value->items) out.push_back(integers(row, where + ": " + name));
  return out;
}

std::vector<float> floats(const Value& line, const std::string& name) {
  std::vector<float> out;
  if (const Value* value = line.find(name))
    for (const Value& item : value->items) out.push_back(float(item.as_double().value_or(0)));
  return out;
}

// The tokens of a row without padding, with shifted labels and the beginnings of its sequences.
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

void append(data::Example& to, const data::Example& more) {
  to.tokens.insert(to.tokens.end(), more.tokens.begin(), more.tokens.end());
  to.labels.insert(to.labels.end(), more.labels.begin(), more.labels.end());
  to.lengths.insert(to.lengths.end(), more.lengths.begin(), more.lengths.end());
}

std::vector<data::Example> language_rows(const Value& line, const std::string& where) {
  const Rows ids = rows_of(line, "input_ids", where), labels = rows_of(line, "labels", where);
  const Rows mask = rows_of(line, "attention_mask", where), positions = rows_of(line, "position_ids", where);
  if (ids.empty() || labels.size() != ids.size()) refuse(where, "needs input_ids and labels");
  std::vector<data::Example> out;
  for (size_t i = 0; i < ids.size(); ++i)
    out.push_back(example_of(ids[i], mask.empty() ? nullptr : &mask[i], labels[i],
                             mask.empty() && !positions.empty() ? &positions[i] : nullptr));
  return out;
}

std::vector<data::Example> pairs(const Value& line, const std::string& where) {
  const Rows ids = rows_of(line, "input_ids", where), mask = rows_of(line, "attention_mask", where);
  const Rows completion = rows_of(line, "completion_mask", where);
  if (ids.empty() || ids.size() % 2 || mask.size() != ids.size() || completion.size() != ids.size())
    refuse(where, "needs input_ids, attention_mask and completion_mask of chosen rows, then rejected rows");
  const auto chosen = floats(line, "ref_chosen_logps"), rejected = floats(line, "ref_rejected_logps");
  const size_t half = ids.size() / 2;
  std::vector<data::Example> out(half);
  std::vector<std::vector<float>> answers(half);
  for (size_t i = 0; i < ids.size(); ++i) {
    std::vector<int64_t> labels = ids[i];
    int64_t answer = 0;
    for (size_t k = 0; k < labels.size(); ++k) {
      if (!completion[i][k]) labels[k] = data::no_label;
      answer += completion[i][k];
    }
    append(out[i % half], example_of(ids[i], &mask[i], labels, nullptr));
    answers[i % half].push_back(float(answer));
  }
  constexpr auto per_sequence = data::Column::Per::sequence;
  for (size_t i = 0; i < half; ++i) {
    out[i].set({"answer_tokens", per_sequence, answers[i]});
    if (!chosen.empty()) out[i].set({"reference_logps", per_sequence, std::vector<float>{chosen[i], rejected[i]}});
  }
  return out;
}

// Prompts, padded on the left, and what was sampled after them, padded on the right.
std::vector<data::Example> completions(const Value& line, const std::string& where) {
  const Rows prompts = rows_of(line, "prompt_ids", where), prompt_masks = rows_of(line, "prompt_mask", where);
  const Rows answers = rows_of(line, "completion_ids", where), masks = rows_of(line, "completion_mask", where);
  if (prompts.empty() || prompt_masks.size() != prompts.size() || answers.size() != prompts.size() ||
      masks.size() != prompts.size())
    refuse(where, "needs prompt_ids, prompt_mask, completion_ids and completion_mask");
  std::vector<data::Example> out;
  for (size_t i = 0; i < prompts.size(); ++i) {
    std::vector<int64_t> ids = prompts[i], mask = prompt_masks[i];
    std::vector<int64_t> labels(ids.size(), data::no_label);
    ids.insert(ids.end(), answers[i].begin(), answers[i].end());
    labels.insert(labels.end(), answers[i].begin(), answers[i].end());
    mask.insert(mask.end(), masks[i].begin(), masks[i].end());
    out.push_back(example_of(ids, &mask, labels, nullptr));
  }
  return out;
}

std::vector<data::Example> examples_of(const Value& line, RecordedRows rows, const std::string& where) {
  switch (rows) {
    case RecordedRows::pairs:
      return pairs(line, where);
    case RecordedRows::completions:
      return completions(line, where);
    default:
      return language_rows(line, where);
  }
}

class Recorded final : public train::BatchSource {
 public:
  explicit Recorded(std::vector<std::vector<std::vector<data::Example>>> steps) : steps_(std::move(steps)) {}
  int64_t steps_in_epoch() const override { return int64_t(steps_.size()); }
  std::vector<train::MicroBatch> step(int64_t step) override {
    std::vector<train::MicroBatch> out;
    for (const auto& micro : steps_[size_t(step)]) {
      out.emplace_back();
      for (const data::Example& example : micro) out.back().push_back(&example);
    }
    return out;
  }
  Value cursor(int64_t) const override { return {}; }
  std::string fingerprint() const override { return "recorded"; }

 private:
  std::vector<std::vector<std::vector<data::Example>>> steps_;
};

}  // namespace

std::unique_ptr<train::BatchSource> read_recorded_batches(const std::filesystem::path& file, RecordedRows rows) {
  std::map<int64_t, std::vector<std::vector<data::Example>>> steps;
  data::for_each_line(file, [&](std::string_view text, int64_t number) {
    const std::string where = str(file.string(), ":", number);
    const Value line = parse_json(text, where);
    const Value* step = line.find("step");
    if (!step || !step->as_int()) refuse(where, "has no step");
    steps[*step->as_int()].push_back(examples_of(line, rows, where));
    return true;
  });
  std::vector<std::vector<std::vector<data::Example>>> out;
  for (auto& [step, micros] : steps) out.push_back(std::move(micros));
  if (out.empty()) refuse(file.string(), "holds no batches");
  return std::make_unique<Recorded>(std::move(out));
}

}  // namespace easydel::probe
