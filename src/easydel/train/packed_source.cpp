#include "easydel/train/packed_source.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "easydel/base/error.h"

namespace easydel::train {
namespace {

constexpr std::array<std::pair<const char*, int64_t data::PackedPlace::*>, 4> cursor_keys{
    {{"epoch", &data::PackedPlace::epoch},
     {"index", &data::PackedPlace::rows},
     {"window", &data::PackedPlace::window},
     {"row", &data::PackedPlace::row}}};
constexpr const char* drawn_key = "drawn";

}  // namespace

PackedSource::PackedSource(std::shared_ptr<data::Dataset> dataset, int64_t update, int64_t parts,
                           int64_t max_steps_in_epoch)
    : dataset_(std::move(dataset)), update_(update), parts_(parts), most_(max_steps_in_epoch) {
  check(dataset_->packed_stream(), "packed rows of a dataset that is not a stream");
}

int64_t PackedSource::steps_in_epoch() const {
  const int64_t all = (dataset_->size() + update_ - 1) / update_;
  return most_ > 0 ? std::min(all, most_) : all;
}

std::vector<MicroBatch> PackedSource::step(int64_t step) {
  constexpr size_t steps_kept = 64;  // those that a plan looks at before the run begins
  const auto after = begins_.upper_bound(step);
  check(after != begins_.begin(), "step ", step, " of packed rows that begin later");
  data::PackedPlace place = std::prev(after)->second;
  for (int64_t next = std::prev(after)->first; next <= step; ++next) {
    of_step_ = dataset_->packed_stream()->update(place, update_, most_);
    begins_[next + 1] = place;
    while (begins_.size() > steps_kept) begins_.erase(begins_.begin());
  }
  std::vector<MicroBatch> out;
  const auto part = size_t(update_ / parts_);
  for (size_t i = 0; i < of_step_.size(); ++i) {
    if (i % part == 0) out.emplace_back();
    out.back().push_back(&of_step_[i]);
  }
  return out;
}

Value PackedSource::cursor(int64_t step) const {
  const auto begin = begins_.find(step);
  check(begin != begins_.end(), "the cursor of step ", step, ", which is not the next one");
  Value out = Value::map();
  for (const auto& [name, member] : cursor_keys) out.set(name, Value::integer(begin->second.*member));
  if (begin->second.drawn.empty()) return out;
  Value& drawn = out.set(drawn_key, Value::list());
  for (const int64_t count : begin->second.drawn) drawn.items.push_back(Value::integer(count));
  return out;
}

void PackedSource::go_to(int64_t step, const Value& cursor) {
  data::PackedPlace place;
  for (const auto& [name, member] : cursor_keys) {
    const Value* const number = cursor.is_map() ? cursor.find(name) : nullptr;
    const std::optional<int64_t> given = number ? number->as_int() : std::nullopt;
    if (!given || *given < 0)
      refuse("state.json", str("its cursor has no '", name, "', and packed rows are found by it"),
             "name another save_directory or model_name, or set resume_if_possible: false to start anew");
    place.*member = *given;
  }
  if (const Value* const drawn = cursor.find(drawn_key))
    for (const Value& count : drawn->items) place.drawn.push_back(count.as_int().value_or(0));
  begins_ = {{step, place}};
}

}  // namespace easydel::train
