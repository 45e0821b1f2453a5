// The order of a run's examples: a function of the data's sizes, the seed and the epoch alone, never of ranks, workers
// or accumulation. So a cursor (epoch, position) is all that a checkpoint needs. Every place is computed when it is
// asked for; nothing grows with the number of examples.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "easydel/data/weight_schedule.h"
#include "easydel/data/windowed_order.h"

namespace easydel::data {

enum class StopStrategy : uint8_t {
  restart,          // an exhausted source restarts; ends when the last one was exhausted once
  first_exhausted,  // ends when the first source is used up
  longest           // an exhausted source is left out; ends when all are exhausted
};

struct BlockMixture {
  bool on = false;            // off: the sources one after the other
  int64_t block_size = 2048;  // examples
  StopStrategy stop = StopStrategy::restart;
  std::vector<double> weights;  // one for each source; empty: equal
  // With points, it decides each block's counts instead of `weights`. Then the run is one epoch, `stop` does not
  // matter, and a source is restarted whenever it is exhausted.
  WeightSchedule schedule = {};
};

class EpochOrder {
 public:
  // `sizes`: how many examples each source has; source s owns the indices after those of the sources before it.
  // `windows`: in which rows are shuffled, of each source of a block mixture, else one; empty: everything at once.
  // UserError: the schedule gives all of a block to sources without examples.
  EpochOrder(std::vector<int64_t> sizes, BlockMixture mixture, bool shuffled, uint64_t seed,
             std::vector<Windows> windows = {});

  int64_t size() const { return size_; }  // examples in an epoch: equal for all epochs
  // The index of the example at a place of an epoch, in constant time; for one thread at a time.
  int64_t at(int64_t epoch, int64_t position) const;
  std::vector<int64_t> uses(int64_t epoch) const;  // how often an epoch has each example
  // With a schedule for packed rows, where at() is a Bug: the examples of a block that begins at the step. `drawn`: how
  // many of each source the blocks before it have, to which its own are added; empty: none.
  std::vector<int64_t> block(int64_t number, int64_t step, std::vector<int64_t>& drawn) const;

 private:
  // Of the block mixture: how many examples of a source the blocks before `block` have.
  int64_t before(int64_t block, size_t source) const;
  int64_t before(int64_t block) const;  // of all sources
  int64_t block_of(int64_t position) const;
  std::vector<int64_t> counts_of_block(const std::vector<double>& weights) const;
  std::vector<int64_t> counts_at(int64_t step) const;
  void set_scheduled_blocks();
  void set_blocks();
  int64_t own(int64_t epoch, size_t source, int64_t number) const;
  int64_t mixed(int64_t epoch, int64_t position) const;
  struct Draw {
    size_t source = 0;
    int64_t number = 0;  // among the block's examples of the source
  };
  Draw draw(int64_t block, int64_t place) const;
  Draw draw_in_order(int64_t block, int64_t place) const;

  std::vector<int64_t> sizes_, begins_;
  BlockMixture mixture_;
  bool shuffled_;
  uint64_t seed_;
  std::vector<Windows> windows_;  // one for each permutation
  std::vector<int64_t> shares_;   // of each source in a whole block; 0: never drawn
  std::vector<int64_t> last_;     // of each source in the block after the whole ones
  // With a schedule, of all blocks instead: how many examples of each source the blocks before one have.
  std::vector<int64_t> scheduled_;
  int64_t whole_blocks_ = 0;  // before the last one
  int64_t size_ = 0;
  // The last block that draw_in_order read.
  mutable std::vector<Draw> draws_;
  mutable int64_t drawn_block_ = -1;
};

}  // namespace easydel::data
