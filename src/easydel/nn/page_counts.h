// Ids and owners of pages without their storage: the Generator's pages and the engine's (esurge/page_pools.h) are
// counted by this class. No torch.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "easydel/base/error.h"

namespace easydel::nn {

// Page ids count from 0, so that storage can be an array of pages. A page without owners is free. A free page keeps its
// memory until release().
class PageCounts {
 public:
  // A page with one owner: the one that was freed last, else one that was released, else a new id.
  int32_t take() {
    ++used_;
    std::vector<int32_t>& from = free_.empty() ? released_ : free_;
    if (from.empty()) {
      owners_.push_back(1);
      return int32_t(owners_.size()) - 1;
    }
    const int32_t page = from.back();
    from.pop_back();
    owners_[size_t(page)] = 1;
    return page;
  }
  // One owner more, one owner less. Both return the number of owners after it.
  int32_t share(int32_t page) {
    check(owners(page) > 0, "pages: page ", page, " is free and cannot be shared");
    return ++owners_[size_t(page)];
  }
  int32_t give_back(int32_t page) {
    check(owners(page) > 0, "pages: page ", page, " is free already");
    const int32_t left = --owners_[size_t(page)];
    if (left == 0) --used_, free_.push_back(page);
    return left;
  }
  // A free page whose memory is given back to the system; -1: there is none.
  int32_t release() {
    if (free_.empty()) return -1;
    const int32_t page = free_.back();
    free_.pop_back();
    released_.push_back(page);
    return page;
  }

  int32_t owners(int32_t page) const { return owners_[size_t(page)]; }
  int64_t ids() const { return int64_t(owners_.size()); }  // that were ever taken
  int64_t used() const { return used_; }                   // pages that have an owner
  int64_t free() const { return int64_t(free_.size()); }   // that still have memory
  int64_t resident() const { return ids() - int64_t(released_.size()); }

  // Bug: a page is not in exactly one of the states used, free and released.
  void check_states() const {
    std::vector<char> seen(owners_.size(), 0);
    for (const auto* list : {&free_, &released_})
      for (const int32_t page : *list) {
        check(owners(page) == 0 && !seen[size_t(page)], "pages: page ", page, " is free twice, or used and free");
        seen[size_t(page)] = 1;
      }
    const auto listed = std::count(seen.begin(), seen.end(), 1);
    check(ids() - listed == used_, "pages: ", ids(), " pages, ", used_, " used, ", listed, " free");
  }

 private:
  std::vector<int32_t> owners_;  // of each page that was ever taken
  std::vector<int32_t> free_, released_;
  int64_t used_ = 0;
};

}  // namespace easydel::nn
