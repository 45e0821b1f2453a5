#include "easydel/train/batch_source.h"

#include <algorithm>

#include "easydel/base/error.h"

namespace easydel::train {

std::vector<const data::Example*> BatchSource::take(int64_t, int64_t) {
  throw Bug("examples are taken from a source without an order");
}
int64_t BatchSource::examples_in_epoch() const { throw Bug("a source without an order has no epochs"); }

DatasetSource::DatasetSource(std::shared_ptr<data::Dataset> dataset, int64_t update, int64_t parts,
                             int64_t most_steps_in_epoch)
    : dataset_(std::move(dataset)), update_(update), parts_(parts), steps_((dataset_->size() + update - 1) / update) {
  if (most_steps_in_epoch > 0) steps_ = std::min(steps_, most_steps_in_epoch);
}

const std::vector<int64_t>& DatasetSource::order_of(int64_t epoch) {
  if (epoch != epoch_) {
    order_ = dataset_->epoch(epoch);
    epoch_ = epoch;
  }
  return order_;
}

std::vector<const data::Example*> DatasetSource::take(int64_t begin, int64_t count) {
  std::vector<const data::Example*> out;
  for (int64_t i = begin; i < begin + count; ++i)
    out.push_back(&dataset_->at(order_of(i / dataset_->size())[size_t(i % dataset_->size())]));
  return out;
}

std::vector<MicroBatch> DatasetSource::step(int64_t step) {
  const std::vector<int64_t>& order = order_of(step / steps_);
  const int64_t begin = step % steps_ * update_, end = std::min(begin + update_, dataset_->size());
  const int64_t part = update_ / parts_;
  std::vector<MicroBatch> out;
  for (int64_t i = begin; i < end; i += part) {
    MicroBatch& micro = out.emplace_back();
    for (int64_t k = i; k < std::min(i + part, end); ++k) micro.push_back(&dataset_->at(order[size_t(k)]));
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
