#include "easydel/esurge/page_pools.h"

#include "easydel/base/error.h"

namespace easydel::esurge {

PagePools::PagePools(CacheLayout layout, int64_t budget_bytes)
    : layout_(std::move(layout)),
      budget_bytes_(budget_bytes),
      counts_(layout_.groups.size()),
      indexed_(layout_.groups.size()) {
  layout_.check_valid();
}

int64_t PagePools::used_pages() const {
  int64_t sum = 0;
  for (const nn::PageCounts& counts : counts_) sum += counts.used();
  return sum;
}

bool PagePools::release_one(std::vector<PageOp>& ops) {
  for (size_t i = 0; i < counts_.size(); ++i)
    if (const int32_t page = counts_[i].release(); page >= 0) {
      resident_bytes_ -= bytes_of(int(i));
      ops.push_back({PageOp::Kind::release, int(i), -1, page, 0});
      return true;
    }
  return false;
}

int32_t PagePools::take(int group, std::vector<PageOp>& ops) {
  check(fits(group), "pages: ", used_bytes_, " bytes are used; another page exceeds the budget of ", budget_bytes_);
  nn::PageCounts& counts = counts_[size_t(group)];
  if (counts.free() == 0) {
    while (resident_bytes_ + kept_bytes_ + bytes_of(group) > budget_bytes_)
      check(release_one(ops), "pages: ", resident_bytes_, " bytes hold memory, but none of them is free");
    resident_bytes_ += bytes_of(group);
  }
  used_bytes_ += bytes_of(group);
  return counts.take();
}

void PagePools::share(int group, int32_t page) {
  if (idle(group, page)) idle_bytes_ -= bytes_of(group);
  counts_[size_t(group)].share(page);
}

void PagePools::give_back(int group, int32_t page) {
  check(tables(group, page) > 0, "pages: page ", page, " of group ", group, " is in no table");
  if (counts_[size_t(group)].give_back(page) == 0) used_bytes_ -= bytes_of(group);
  if (idle(group, page)) idle_bytes_ += bytes_of(group);
}

void PagePools::index(int group, int32_t page) {
  check(!indexed(group, page), "pages: page ", page, " of group ", group, " is in the index already");
  counts_[size_t(group)].share(page);
  auto& marks = indexed_[size_t(group)];
  if (size_t(page) >= marks.size()) marks.resize(size_t(page) + 1);
  marks[size_t(page)] = 1;
}

void PagePools::unindex(int group, int32_t page) {
  check(indexed(group, page), "pages: page ", page, " of group ", group, " is not in the index");
  if (idle(group, page)) idle_bytes_ -= bytes_of(group);
  indexed_[size_t(group)][size_t(page)] = 0;
  if (counts_[size_t(group)].give_back(page) == 0) used_bytes_ -= bytes_of(group);
}

void PagePools::release_free(std::vector<PageOp>& ops) {
  while (release_one(ops)) {
  }
}

}  // namespace easydel::esurge
