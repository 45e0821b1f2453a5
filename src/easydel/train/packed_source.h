// The examples of a run whose rows are packed while it goes on.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "easydel/data/packed_stream.h"
#include "easydel/train/batch_source.h"

namespace easydel::train {

// Updates as DatasetSource has them. Where a step begins follows from the step before it, or from a checkpoint's
// cursor; other steps are reached by reading on from the last known one.
class PackedSource final : public BatchSource {
 public:
  // The dataset is a packed stream.
  PackedSource(std::shared_ptr<data::Dataset> dataset, int64_t update, int64_t parts, int64_t max_steps_in_epoch = 0);
  int64_t steps_in_epoch() const override;  // estimated from the first rows
  // Bug: a step before the one that the run began with, or long before the last one.
  std::vector<MicroBatch> step(int64_t step) override;
  Value cursor(int64_t step) const override;
  // UserError: the cursor does not say where packed rows stand.
  void go_to(int64_t step, const Value& cursor) override;
  std::string fingerprint() const override { return dataset_->fingerprint(); }
  data::Dataset* dataset() override { return dataset_.get(); }

 private:
  std::shared_ptr<data::Dataset> dataset_;
  int64_t update_, parts_, most_;
  std::map<int64_t, data::PackedPlace> begins_{{0, {}}};  // of the last steps
  std::vector<data::Example> of_step_;
};

}  // namespace easydel::train
