// The order of a run's examples: a function of the data's sizes, the seed and the epoch alone, never of ranks, workers
// or accumulation. So a cursor (epoch, index) is all that a checkpoint needs.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

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
};

class EpochOrder {
 public:
  // `sizes`: how many examples each source has; source s owns the indices after those of the sources before it.
  EpochOrder(std::vector<int64_t> sizes, BlockMixture mixture, bool shuffled, uint64_t seed);

  int64_t size() const { return size_; }            // examples in an epoch: equal for all epochs
  std::vector<int64_t> epoch(int64_t epoch) const;  // indices of examples

 private:
  std::vector<int64_t> blocks() const;  // the source of the i-th example
  std::vector<int64_t> sizes_, begins_;
  BlockMixture mixture_;
  bool shuffled_;
  uint64_t seed_;
  std::vector<int64_t> sources_;  // of each place, with a block mixture
  int64_t size_ = 0;
};

}  // namespace easydel::data
