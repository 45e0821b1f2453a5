// Which examples each step uses: a function of the step's index, so that a run can resume at any step.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "easydel/base/document.h"
#include "easydel/data/dataset.h"

namespace easydel::train {

class Ranks;

using MicroBatch = std::vector<const data::Example*>;

// A rank's examples of a micro-batch.
struct RankExamples {
  MicroBatch examples;      // may be empty
  int64_t first_token = 0;  // tokens of the micro-batch before them
  int64_t tokens = 0;       // of the whole micro-batch
};

struct ExampleSize {
  int64_t tokens = 0, labelled = 0;
};

class BatchSource {
 public:
  virtual ~BatchSource() = default;
  virtual int64_t steps_in_epoch() const = 0;
  // The micro-batches of a step (from 0), of all ranks. The last one of an epoch may be smaller; none is empty. The
  // examples are valid until the next call of step.
  virtual std::vector<MicroBatch> step(int64_t step) = 0;
  // This rank's examples of the step's micro-batches, for methods that need no others; valid as those of step().
  // Collective.
  virtual std::vector<RankExamples> part(int64_t step, const Ranks& ranks);
  // After part(): an example of the micro-batch of this number, with labels if any of it has some. For a rank that has
  // nothing to learn from in it.
  virtual const data::Example& lent(size_t micro);
  // Epoch and index of the step's first example, as a checkpoint keeps them; of a step that was made or comes next.
  virtual Value cursor(int64_t step) const = 0;
  // The run goes on with this step, and `cursor` is what cursor() said of it.
  virtual void go_to(int64_t /*step*/, const Value& /*cursor*/) {}
  virtual std::string fingerprint() const = 0;
  // How large the examples of step() are, without making them.
  virtual std::vector<std::vector<ExampleSize>> sizes(int64_t step);
  virtual data::Dataset* dataset() { return nullptr; }  // that the examples come from; null: from none
  // The examples at [begin, begin + count) of all epochs after each other, valid until the next call of take; an epoch
  // has examples_in_epoch(). For methods that make their own examples from prompts. Bug unless the source has an order.
  virtual std::vector<const data::Example*> take(int64_t begin, int64_t count);
  virtual int64_t examples_in_epoch() const;

 private:
  std::vector<MicroBatch> whole_;  // of the last part()
};

// Updates of `update` examples in `parts` parts, in the dataset's order of each epoch. A stream prepares `steps_ahead`
// updates before they are asked for, of part() the rank's own rows alone; an update has fewer examples if some of its
// rows have none.
class DatasetSource final : public BatchSource {
 public:
  static constexpr int64_t default_steps_ahead = 4;
  DatasetSource(std::shared_ptr<data::Dataset> dataset, int64_t update, int64_t parts, int64_t max_steps_in_epoch = 0,
                int64_t steps_ahead = default_steps_ahead);
  int64_t steps_in_epoch() const override { return steps_; }
  std::vector<MicroBatch> step(int64_t step) override;
  // UserError on all ranks: one of them cannot read a row, or all together have more bad rows than the run may skip.
  std::vector<RankExamples> part(int64_t step, const Ranks& ranks) override;
  const data::Example& lent(size_t micro) override;
  Value cursor(int64_t step) const override;
  std::vector<std::vector<ExampleSize>> sizes(int64_t step) override;
  std::string fingerprint() const override { return dataset_->fingerprint(); }
  data::Dataset* dataset() override { return dataset_.get(); }
  std::vector<const data::Example*> take(int64_t begin, int64_t count) override;
  int64_t examples_in_epoch() const override { return dataset_->size(); }

 private:
  // The indices of a step's examples, by micro-batch.
  std::vector<std::vector<int64_t>> indices(int64_t step);
  // `ranks`: whose part is announced; null: everything.
  void announce(int64_t step, const Ranks* ranks);
  std::vector<RankExamples> part_of_stream(int64_t step, const Ranks& ranks);

  std::shared_ptr<data::Dataset> dataset_;
  int64_t update_, parts_, steps_, steps_ahead_;
  int64_t expected_ = -1, announced_ = 0;  // of a stream: the next step, and the first one that is not announced
  std::vector<data::Example> of_step_, taken_;
  std::vector<std::vector<int64_t>> lenders_;  // of the last part(): the indices of each micro-batch
  data::Example lent_;
};

}  // namespace easydel::train
