// The examples of methods that learn from generations: a window of micro-batches is made with the weights as they are,
// learned several times, and kept for a checkpoint, so that a run can resume inside of a window.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "easydel/train/batch_source.h"
#include "easydel/train/method_state.h"

namespace easydel::train {

struct RolloutPlan {
  int64_t accumulation = 1;          // micro-batches of a step
  int64_t steps_per_generation = 1;  // micro-batches of a window
  int64_t iterations = 1;            // how often each of them is learned
  int64_t steps_in_epoch = 1;
};

// Makes the micro-batches of a window (from 0).
using MakeWindow = std::function<std::vector<std::vector<data::Example>>(int64_t window)>;

class RolloutSource final : public BatchSource {
 public:
  // `rows`: what the windows are made from, for cursors and fingerprints.
  RolloutSource(std::unique_ptr<BatchSource> rows, RolloutPlan plan, MakeWindow make)
      : rows_(std::move(rows)), plan_(plan), make_(std::move(make)) {}

  int64_t steps_in_epoch() const override { return plan_.steps_in_epoch; }
  // Makes the windows that begin in the step. Steps must be asked for in their order, or begin after restore().
  std::vector<MicroBatch> step(int64_t step) override;
  Value cursor(int64_t step) const override;
  std::string fingerprint() const override { return rows_->fingerprint(); }
  data::Dataset* dataset() override { return rows_->dataset(); }

  // The window that was made last: a step that was not finished may still need it.
  void save(MethodState& state) const;
  void restore(const SavedState& saved);

 private:
  int64_t learned_per_window() const { return plan_.steps_per_generation * plan_.iterations; }

  std::unique_ptr<BatchSource> rows_;
  RolloutPlan plan_;
  MakeWindow make_;
  int64_t window_ = -1;  // which one is kept; -1: none
  std::vector<std::vector<data::Example>> kept_;
  std::vector<std::vector<std::vector<data::Example>>> earlier_;  // windows that ended within the step
};

}  // namespace easydel::train
