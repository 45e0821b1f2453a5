#include "easydel/train/rollout_source.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>

#include "easydel/base/error.h"
#include "easydel/tensor/torch.h"

namespace easydel::train {
namespace {

const std::string prefix = "rollouts.", sizes_prefix = prefix + "sizes.";  // the second: of each example's list

template <class T>
Tensor packed(const std::vector<T>& values) {
  return at::tensor(at::ArrayRef<T>(values), c10::CppTypeToScalarType<T>::value);
}

template <class T>
std::vector<T> unpacked(const Tensor& tensor) {
  const Tensor own = tensor.contiguous();
  const T* const begin = own.const_data_ptr<T>();
  return {begin, begin + own.numel()};
}

// All examples of a window as flat lists.
struct Flat {
  std::vector<int64_t> tokens, labels, lengths, sequences;  // the last: sequences of each example
};

template <class T>
void append(std::vector<T>& to, const data::Column& column) {
  const auto& values = std::get<std::vector<T>>(column.values);
  to.insert(to.end(), values.begin(), values.end());
}

template <class T>
data::Column taken(const std::vector<T>& from, size_t& at, const std::string& name, data::Column::Per per,
                   size_t count) {
  check(at + count <= from.size(), "a saved window has too few numbers of ", name);
  const auto begin = from.begin() + static_cast<std::ptrdiff_t>(at);
  at += count;
  return {name, per, std::vector<T>(begin, begin + static_cast<std::ptrdiff_t>(count))};
}

bool is_float(const data::Column& column) { return std::holds_alternative<std::vector<float>>(column.values); }

}  // namespace

std::vector<MicroBatch> RolloutSource::step(int64_t step) {
  const int64_t first = step * plan_.accumulation, per_window = learned_per_window();
  earlier_.clear();
  std::vector<MicroBatch> out;
  for (int64_t micro = first; micro < first + plan_.accumulation; ++micro) {
    if (micro / per_window != window_) {
      check(micro % per_window == 0, "a window of rollouts that began before the run is not there");
      auto made = make_(micro / per_window);
      check(int64_t(made.size()) == plan_.steps_per_generation, "a window of ", made.size(), " micro-batches");
      if (!out.empty()) earlier_.push_back(std::move(kept_));
      kept_ = std::move(made);
      window_ = micro / per_window;
    }
    out.emplace_back();
    for (const data::Example& example : kept_[size_t(micro % plan_.steps_per_generation)])
      out.back().push_back(&example);
  }
  return out;
}

Value RolloutSource::cursor(int64_t step) const {
  Value out = Value::map();
  out.set("window", Value::integer(step * plan_.accumulation / learned_per_window()));
  return out;
}

void RolloutSource::save(MethodState& state) const {
  if (window_ < 0) return;
  Flat flat;
  Value counts = Value::list(), columns = Value::list();
  std::vector<const data::Example*> all;
  for (const auto& micro : kept_) {
    counts.items.push_back(Value::integer(int64_t(micro.size())));
    for (const data::Example& example : micro) {
      all.push_back(&example);
      flat.tokens.insert(flat.tokens.end(), example.tokens.begin(), example.tokens.end());
      flat.labels.insert(flat.labels.end(), example.labels.begin(), example.labels.end());
      flat.lengths.insert(flat.lengths.end(), example.lengths.begin(), example.lengths.end());
      flat.sequences.push_back(int64_t(example.lengths.size()));
    }
  }
  for (const auto& [name, values] : {std::pair{"tokens", &flat.tokens},
                                     {"labels", &flat.labels},
                                     {"lengths", &flat.lengths},
                                     {"sequences", &flat.sequences}})
    state.tensors.push_back({prefix + name, packed(*values)});
  for (const data::Column& like : all.at(0)->columns) {
    std::vector<float> floats;
    std::vector<int64_t> integers, sizes;
    for (const data::Example* example : all) {
      const data::Column* const column = example->find(like.name);
      check(column && is_float(*column) == is_float(like), "examples of a window have unequal columns");
      is_float(like) ? append(floats, *column) : append(integers, *column);
      sizes.push_back(int64_t(column->size()));
    }
    if (like.per == data::Column::Per::list) state.tensors.push_back({sizes_prefix + like.name, packed(sizes)});
    state.tensors.push_back({prefix + "column." + like.name, is_float(like) ? packed(floats) : packed(integers)});
    Value column = Value::map();
    column.set("name", Value::text(like.name));
    column.set("per", Value::integer(int64_t(like.per)));
    columns.items.push_back(std::move(column));
  }
  Value window = Value::map();
  window.set("window", Value::integer(window_));
  window.set("micro_batches", std::move(counts));
  window.set("columns", std::move(columns));
  if (!state.document.is_map()) state.document = Value::map();
  state.document.set("rollouts", std::move(window));
}

void RolloutSource::restore(const SavedState& saved) {
  const Value* const window = saved.document().find("rollouts");
  if (!window) return;
  const auto list = [&](const std::string& name) { return unpacked<int64_t>(saved.tensor(prefix + name)); };
  const Flat flat{list("tokens"), list("labels"), list("lengths"), list("sequences")};
  kept_.clear();
  size_t token = 0, sequence = 0, example = 0;
  for (const Value& count : window->find("micro_batches")->items) {
    auto& micro = kept_.emplace_back();
    for (int64_t i = 0; i < count.as_int().value_or(0); ++i, ++example) {
      data::Example& one = micro.emplace_back();
      check(example < flat.sequences.size(), "a saved window has too few examples");
      for (int64_t s = 0; s < flat.sequences[example]; ++s, ++sequence) {
        const int64_t length = flat.lengths.at(sequence);
        one.lengths.push_back(int32_t(length));
        for (int64_t k = 0; k < length; ++k, ++token) {
          one.tokens.push_back(int32_t(flat.tokens.at(token)));
          one.labels.push_back(int32_t(flat.labels.at(token)));
        }
      }
    }
  }
  for (const Value& column : window->find("columns")->items) {
    const std::string name = column.find("name")->scalar;
    const auto per = data::Column::Per(column.find("per")->as_int().value_or(0));
    const Tensor values = saved.tensor(prefix + "column." + name);
    const bool floats = values.scalar_type() == at::kFloat;
    const auto f = floats ? unpacked<float>(values) : std::vector<float>();
    const auto n = floats ? std::vector<int64_t>() : unpacked<int64_t>(values);
    const bool lists = per == data::Column::Per::list;
    const auto sizes = lists ? unpacked<int64_t>(saved.tensor(sizes_prefix + name)) : std::vector<int64_t>();
    size_t at = 0, place = 0;
    for (auto& micro : kept_)
      for (data::Example& one : micro) {
        const size_t count = per == data::Column::Per::token      ? one.tokens.size()
                             : per == data::Column::Per::sequence ? one.lengths.size()
                             : lists                              ? size_t(sizes.at(place++))
                                                                  : 1;
        one.set(floats ? taken(f, at, name, per, count) : taken(n, at, name, per, count));
      }
  }
  window_ = window->find("window")->as_int().value_or(-1);
}

}  // namespace easydel::train
