#include "easydel/data/epoch_order.h"

#include <algorithm>
#include <numeric>

#include "easydel/base/error.h"
#include "easydel/data/shuffle.h"

namespace easydel::data {

EpochOrder::EpochOrder(std::vector<int64_t> sizes, BlockMixture mixture, bool shuffled, uint64_t seed)
    : sizes_(std::move(sizes)), mixture_(std::move(mixture)), shuffled_(shuffled), seed_(seed) {
  int64_t total = 0;
  for (const int64_t size : sizes_) begins_.push_back(std::exchange(total, total + size));
  mixture_.on = mixture_.on && sizes_.size() > 1 && total > 0;
  if (mixture_.weights.empty()) mixture_.weights.assign(sizes_.size(), 1.0);
  check(mixture_.weights.size() == sizes_.size(), mixture_.weights.size(), " weights for ", sizes_.size(), " sources");
  if (mixture_.on) sources_ = blocks();
  size_ = mixture_.on ? int64_t(sources_.size()) : total;
}

// Each block has floor(weight * block size) examples of each source, the remainder from the heaviest sources; their
// places in the block are shuffled by (seed, block).
std::vector<int64_t> EpochOrder::blocks() const {
  const size_t count = sizes_.size();
  const double sum = std::accumulate(mixture_.weights.begin(), mixture_.weights.end(), 0.0);
  std::vector<int64_t> share(count);
  for (size_t s = 0; s < count; ++s) share[s] = int64_t(mixture_.weights[s] / sum * double(mixture_.block_size));
  const auto heaviest = std::max_element(mixture_.weights.begin(), mixture_.weights.end()) - mixture_.weights.begin();
  share[heaviest] += mixture_.block_size - std::accumulate(share.begin(), share.end(), int64_t{0});

  // A source that is empty or has weight 0 can never be used up by sampling.
  std::vector<int64_t> left = sizes_;
  std::vector<bool> drawn(count);
  for (size_t s = 0; s < count; ++s) drawn[s] = share[s] > 0 && sizes_[s] > 0;
  std::vector<bool> used_up(count, false);
  const auto all_used_up = [&] {
    for (size_t s = 0; s < count; ++s)
      if (drawn[s] && !used_up[s]) return false;
    return true;
  };

  std::vector<int64_t> out;
  for (uint64_t block = 0; !all_used_up(); ++block) {
    std::vector<int64_t> places;
    for (size_t s = 0; s < count; ++s) places.insert(places.end(), share[s], int64_t(s));
    shuffle(places, Stream(seed_, Use::block, block));
    for (const int64_t s : places) {
      if (!drawn[s]) continue;
      if (left[s] == 0) {
        if (mixture_.stop == StopStrategy::first_exhausted) return out;
        if (mixture_.stop == StopStrategy::longest) continue;
        left[s] = sizes_[s];
      }
      out.push_back(s);
      if (--left[s] == 0) {
        used_up[s] = true;
        if (mixture_.stop == StopStrategy::restart && all_used_up()) return out;
      }
    }
  }
  return out;
}

std::vector<int64_t> EpochOrder::epoch(int64_t epoch) const {
  const auto number = uint64_t(epoch);
  if (!mixture_.on) {
    std::vector<int64_t> out(size_);
    std::iota(out.begin(), out.end(), int64_t{0});
    if (shuffled_) shuffle(out, Stream(seed_, Use::epoch, number));
    return out;
  }
  // Each source in its own order, assigned to the places that the blocks give it.
  std::vector<std::vector<int64_t>> own(sizes_.size());
  std::vector<int64_t> next(sizes_.size(), 0);
  for (size_t s = 0; s < own.size(); ++s) {
    own[s].resize(sizes_[s]);
    std::iota(own[s].begin(), own[s].end(), begins_[s]);
    if (shuffled_) shuffle(own[s], Stream(seed_, Use::source, number << 16 | s));
  }
  std::vector<int64_t> out;
  out.reserve(size_);
  for (const int64_t s : sources_) out.push_back(own[s][next[s]++ % sizes_[s]]);
  return out;
}

}  // namespace easydel::data
