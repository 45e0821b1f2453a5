#include "easydel/train/batch_source.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "easydel/base/error.h"

namespace easydel::train {

std::vector<std::vector<ExampleSize>> BatchSource::sizes(int64_t number) {
  std::vector<std::vector<ExampleSize>> out;
  for (const MicroBatch& micro : step(number)) {
    out.emplace_back();
    for (const data::Example* example : micro)
      out.back().push_back({int64_t(example->tokens.size()), example->labelled()});
  }
  return out;
}
std::vector<const data::Example*> BatchSource::take(int64_t, int64_t) {
  throw Bug("examples are taken from a source without an order");
}
int64_t BatchSource::examples_in_epoch() const { throw Bug("a source without an order has no epochs"); }

DatasetSource::DatasetSource(std::shared_ptr<data::Dataset> dataset, int64_t update, int64_t parts,
                             int64_t max_steps_in_epoch, int64_t steps_ahead)
    : dataset_(std::move(dataset)),
      update_(update),
      parts_(parts),
      steps_((dataset_->size() + update - 1) / update),
      steps_ahead_(steps_ahead) {
  if (max_steps_in_epoch > 0) steps_ = std::min(steps_, max_steps_in_epoch);
}

std::vector<const data::Example*> DatasetSource::take(int64_t begin, int64_t count) {
  taken_.clear();
  for (int64_t i = begin; i < begin + count; ++i)
    taken_.push_back(dataset_->at(dataset_->index(i / dataset_->size(), i % dataset_->size())));
  std::vector<const data::Example*> out;
  for (const data::Example& example : taken_) out.push_back(&example);
  return out;
}

std::vector<std::vector<int64_t>> DatasetSource::indices(int64_t step) {
  const int64_t begin = step % steps_ * update_, end = std::min(begin + update_, dataset_->size());
  const int64_t part = update_ / parts_;
  std::vector<std::vector<int64_t>> out;
  for (int64_t i = begin; i < end; i += part) {
    std::vector<int64_t>& micro = out.emplace_back();
    for (int64_t k = i; k < std::min(i + part, end); ++k) micro.push_back(dataset_->index(step / steps_, k));
  }
  return out;
}

void DatasetSource::announce(int64_t step) {
  if (!dataset_->is_stream()) return;
  bool anew = step != expected_;
  if (anew) announced_ = step;
  for (expected_ = step + 1; announced_ <= step + steps_ahead_; ++announced_)
    for (const std::vector<int64_t>& micro : indices(announced_)) dataset_->announce(micro, std::exchange(anew, false));
}

std::vector<MicroBatch> DatasetSource::step(int64_t step) {
  announce(step);
  const auto all = indices(step);
  of_step_.clear();
  of_step_.reserve(size_t(update_));
  std::vector<MicroBatch> out;
  for (const std::vector<int64_t>& micro : all) {
    MicroBatch& made = out.emplace_back();
    for (const int64_t index : micro)
      if (std::optional<data::Example> example = dataset_->find(index))
        made.push_back(&of_step_.emplace_back(std::move(*example)));
    if (made.empty()) out.pop_back();
  }
  if (out.empty())
    refuse(str("step ", step + 1), "none of its rows has an example",
           "raise total_batch_size, or leave mixture.enable_caching out, so that such rows are left out beforehand");
  return out;
}

std::vector<std::vector<ExampleSize>> DatasetSource::sizes(int64_t step) {
  if (dataset_->is_stream()) return BatchSource::sizes(step);
  std::vector<std::vector<ExampleSize>> out;
  for (const std::vector<int64_t>& micro : indices(step)) {
    out.emplace_back();
    for (const int64_t index : micro) out.back().push_back({dataset_->tokens_of(index), dataset_->labels_of(index)});
  }
  return out;
}

Value DatasetSource::cursor(int64_t step) const {
  Value out = Value::map();
  out.set("epoch", Value::integer(step / steps_));
  out.set("index", Value::integer(step % steps_ * update_));
  return out;
}

}  // namespace easydel::train
