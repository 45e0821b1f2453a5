#include "easydel/train/batch_source.h"

#include <algorithm>

namespace easydel::train {

DatasetSource::DatasetSource(std::shared_ptr<data::Dataset> dataset, int64_t update, int64_t parts,
                             int64_t most_steps_in_epoch)
    : dataset_(std::move(dataset)), update_(update), parts_(parts), steps_((dataset_->size() + update - 1) / update) {
  if (most_steps_in_epoch > 0) steps_ = std::min(steps_, most_steps_in_epoch);
}

std::vector<MicroBatch> DatasetSource::step(int64_t step) {
  if (const int64_t epoch = step / steps_; epoch != epoch_) {
    order_ = dataset_->epoch(epoch);
    epoch_ = epoch;
  }
  const int64_t begin = step % steps_ * update_, end = std::min(begin + update_, dataset_->size());
  const int64_t part = update_ / parts_;
  std::vector<MicroBatch> out;
  for (int64_t i = begin; i < end; i += part) {
    MicroBatch& micro = out.emplace_back();
    for (int64_t k = i; k < std::min(i + part, end); ++k) micro.push_back(&dataset_->at(order_[size_t(k)]));
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
