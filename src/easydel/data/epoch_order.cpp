#include "easydel/data/epoch_order.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "easydel/base/error.h"
#include "easydel/data/permutation.h"

namespace easydel::data {

EpochOrder::EpochOrder(std::vector<int64_t> sizes, BlockMixture mixture, bool shuffled, uint64_t seed,
                       std::vector<Windows> windows)
    : sizes_(std::move(sizes)),
      mixture_(std::move(mixture)),
      shuffled_(shuffled),
      seed_(seed),
      windows_(std::move(windows)) {
  windows_.resize(std::max<size_t>(windows_.size(), sizes_.size() + 1));
  for (const int64_t size : sizes_) begins_.push_back(std::exchange(size_, size_ + size));
  mixture_.on = mixture_.on && sizes_.size() > 1 && size_ > 0;
  if (!mixture_.on) return;
  if (!mixture_.schedule.points.empty()) {
    if (!mixture_.schedule.is_packed) set_scheduled_blocks();
    return;
  }
  if (mixture_.weights.empty()) mixture_.weights.assign(sizes_.size(), 1.0);
  shares_ = counts_of_block(mixture_.weights);
  set_blocks();
}

// A block has floor(weight * block size) examples of each source, the remainder from the heaviest sources. A source
// that is empty or has weight 0 can never be used up by sampling.
std::vector<int64_t> EpochOrder::counts_of_block(const std::vector<double>& weights) const {
  check(weights.size() == sizes_.size(), weights.size(), " weights for ", sizes_.size(), " sources");
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  std::vector<int64_t> out;
  for (const double weight : weights) out.push_back(int64_t(weight / sum * double(mixture_.block_size)));
  const auto heaviest = std::ranges::max_element(weights) - weights.begin();
  out[size_t(heaviest)] += mixture_.block_size - std::accumulate(out.begin(), out.end(), int64_t{0});
  for (size_t s = 0; s < sizes_.size(); ++s)
    if (sizes_[s] == 0) out[s] = 0;
  return out;
}

// The counts of a block are those of the step at which it begins. The last block is laid out whole and ends early, so
// that a longer run has the same rows up to there.
void EpochOrder::set_scheduled_blocks() {
  const WeightSchedule& schedule = mixture_.schedule;
  size_ = schedule.examples_in_run;
  check(size_ > 0, "a schedule of weights for a run of ", size_, " examples");
  scheduled_.assign(sizes_.size(), 0);
  for (int64_t begin = 0; begin < size_; ++whole_blocks_) {
    const int64_t step = begin / schedule.examples_per_update;
    for (const int64_t count : counts_at(step)) {
      begin += count;
      scheduled_.push_back(scheduled_[scheduled_.size() - sizes_.size()] + count);
    }
  }
  --whole_blocks_;
}

std::vector<int64_t> EpochOrder::counts_at(int64_t step) const {
  std::vector<int64_t> counts = counts_of_block(mixture_.schedule.shares_at(step));
  if (std::ranges::max(counts) == 0)
    refuse("mixture.mixture_weight_schedule",
           str("the sources with weights at step ", step, " have no rows to train on"),
           "give a source that has rows a weight above 0");
  return counts;
}

std::vector<int64_t> EpochOrder::block(int64_t number, int64_t step, std::vector<int64_t>& drawn) const {
  check(mixture_.on && mixture_.schedule.is_packed, "a block of an order that has none of its own");
  const std::vector<int64_t> counts = counts_at(step);
  drawn.resize(sizes_.size(), 0);
  const Permutation places(std::accumulate(counts.begin(), counts.end(), int64_t{0}),
                           permutation_key(seed_, Use::block, {uint64_t(number)}));
  std::vector<int64_t> out, next = drawn;
  for (int64_t place = 0; place < std::accumulate(counts.begin(), counts.end(), int64_t{0}); ++place) {
    Draw one{0, places.at(place)};
    while (one.number >= counts[one.source]) one.number -= counts[one.source++];
    out.push_back(own(0, one.source, shuffled_ ? drawn[one.source] + one.number : next[one.source]++));
  }
  for (size_t s = 0; s < counts.size(); ++s) drawn[s] += counts[s];
  return out;
}

// The last block has as much of each source as of the one that ends the epoch, in proportion to their shares.
void EpochOrder::set_blocks() {
  const bool longest = mixture_.stop == StopStrategy::longest, restart = mixture_.stop == StopStrategy::restart;
  const bool first = mixture_.stop == StopStrategy::first_exhausted;
  const auto drawn = [this](size_t s) { return shares_[s] > 0; };
  whole_blocks_ = first ? INT64_MAX : 0;
  for (size_t s = 0; s < sizes_.size(); ++s) {
    if (!drawn(s)) continue;
    whole_blocks_ =
        first ? std::min(whole_blocks_, sizes_[s] / shares_[s]) : std::max(whole_blocks_, (sizes_[s] - 1) / shares_[s]);
  }
  double part = restart ? 0 : 1;
  const auto left = [&](size_t s) { return std::max<int64_t>(0, sizes_[s] - whole_blocks_ * shares_[s]); };
  for (size_t s = 0; s < sizes_.size(); ++s) {
    if (!drawn(s)) continue;
    const double own = double(left(s)) / double(shares_[s]);
    part = restart ? std::max(part, own) : std::min(part, own);
  }
  for (size_t s = 0; s < sizes_.size(); ++s) {
    const int64_t share = std::llround(part * double(shares_[s]));
    last_.push_back(longest ? left(s) : restart ? std::max(share, left(s)) : std::min(share, left(s)));
    if (!drawn(s)) last_.back() = 0;
  }
  size_ = before(whole_blocks_ + 1);
}

int64_t EpochOrder::before(int64_t block, size_t source) const {
  if (!scheduled_.empty()) return scheduled_[size_t(block) * sizes_.size() + source];
  if (block > whole_blocks_) return before(whole_blocks_, source) + last_[source];
  const int64_t count = block * shares_[source];
  return mixture_.stop == StopStrategy::longest ? std::min(sizes_[source], count) : count;
}

int64_t EpochOrder::before(int64_t block) const {
  int64_t count = 0;
  for (size_t s = 0; s < sizes_.size(); ++s) count += before(block, s);
  return count;
}

int64_t EpochOrder::block_of(int64_t position) const {
  int64_t low = 0, high = whole_blocks_;  // the last block that begins at the position or before it
  while (low < high) {
    const int64_t middle = low + (high - low + 1) / 2;
    before(middle) <= position ? low = middle : high = middle - 1;
  }
  return low;
}

EpochOrder::Draw EpochOrder::draw(int64_t block, int64_t place) const {
  const Permutation places(before(block + 1) - before(block), permutation_key(seed_, Use::block, {uint64_t(block)}));
  Draw out{0, places.at(place)};
  while (true) {
    const int64_t own = before(block + 1, out.source) - before(block, out.source);
    if (out.number < own) return out;
    out.number -= own;
    ++out.source;
  }
}

// The same sources at the same places, with the examples of each in their order.
EpochOrder::Draw EpochOrder::draw_in_order(int64_t block, int64_t place) const {
  if (drawn_block_ != block) {
    std::vector<int64_t> next(sizes_.size(), 0);
    draws_.clear();
    for (int64_t i = 0; i < before(block + 1) - before(block); ++i) {
      const size_t source = draw(block, i).source;
      draws_.push_back({source, next[source]++});
    }
    drawn_block_ = block;
  }
  return draws_[size_t(place)];
}

int64_t EpochOrder::own(int64_t epoch, size_t source, int64_t number) const {
  const int64_t pass = number / sizes_[source], place = number % sizes_[source];
  if (!shuffled_) return begins_[source] + place;
  const WindowedOrder order(sizes_[source], windows_[source], seed_, Use::source,
                            {uint64_t(epoch), source, uint64_t(pass)});
  return begins_[source] + order.at(place);
}

int64_t EpochOrder::mixed(int64_t epoch, int64_t position) const {
  const int64_t block = block_of(position), place = position - before(block);
  const Draw one = shuffled_ ? draw(block, place) : draw_in_order(block, place);
  return own(epoch, one.source, before(block, one.source) + one.number);
}

int64_t EpochOrder::at(int64_t epoch, int64_t position) const {
  check(position >= 0 && position < size_, "place ", position, " of an epoch of ", size_);
  check(!mixture_.on || !mixture_.schedule.is_packed, "a place of a schedule for packed rows");
  if (mixture_.on) return mixed(epoch, position);
  if (!shuffled_) return position;
  return WindowedOrder(size_, windows_[0], seed_, Use::epoch, {uint64_t(epoch)}).at(position);
}

std::vector<int64_t> EpochOrder::uses(int64_t epoch) const {
  std::vector<int64_t> out;
  for (size_t s = 0; s < sizes_.size(); ++s) {
    const int64_t drawn = !mixture_.on ? sizes_[s] : sizes_[s] > 0 ? before(whole_blocks_, s) : 0;
    const int64_t passes = sizes_[s] > 0 ? drawn / sizes_[s] : 0;
    out.insert(out.end(), size_t(sizes_[s]), passes);
    for (int64_t number = passes * sizes_[s]; number < drawn; ++number) ++out[size_t(own(epoch, s, number))];
  }
  // The last block may end before all that it has is used.
  for (int64_t i = mixture_.on ? before(whole_blocks_) : size_; i < size_; ++i) ++out[size_t(mixed(epoch, i))];
  return out;
}

}  // namespace easydel::data
