// Counts the pages of all groups against one budget of bytes. Ids and counts alone: a page's storage is nn's, by group
// and id.
#pragma once

#include <cstdint>
#include <vector>

#include "easydel/esurge/cache_layout.h"
#include "easydel/nn/page_counts.h"

namespace easydel::esurge {

// What has to be done to storage, in the order of the list, before a pass reads or writes it.
struct PageOp {
  enum class Kind : uint8_t {
    copy,     // the first `rows` tokens of page `from` to page `to`; of a state all of it (rows is 0)
    clear,    // state `to` becomes zero
    release,  // page `to` is free: its memory can be given back to the system
  };
  Kind kind = Kind::copy;
  int group = 0;
  int32_t from = -1, to = -1;
  int64_t rows = 0;
};

// A page is free, or it has owners: page tables of sequences, and the prefix index. A page that only the index owns is
// idle: it can be had by evicting it.
class PagePools {
 public:
  PagePools(CacheLayout layout, int64_t budget_bytes);

  const CacheLayout& layout() const { return layout_; }
  int64_t budget_bytes() const { return budget_bytes_; }
  int64_t used_bytes() const { return used_bytes_; }          // of pages with owners, and of keep_bytes()
  int64_t idle_bytes() const { return idle_bytes_; }          // of these: owned by the index alone
  int64_t resident_bytes() const { return resident_bytes_; }  // of pages that hold memory, free ones included
  int64_t used_pages() const;
  const nn::PageCounts& counts(int group) const { return counts_[size_t(group)]; }

  // Whether a page of the group, or so many bytes, can be taken without evicting anything.
  bool fits(int group) const { return fits_bytes(bytes_of(group)); }
  bool fits_bytes(int64_t bytes) const { return used_bytes_ + bytes <= budget_bytes_; }
  // Bytes that the index keeps beside its pages. They count as idle.
  void keep_bytes(int64_t bytes) { kept_bytes_ += bytes, used_bytes_ += bytes, idle_bytes_ += bytes; }
  void give_up_bytes(int64_t bytes) { keep_bytes(-bytes); }
  // A page with one owner. Memory of free pages of other groups is released if the budget requires it. Bug: !fits().
  int32_t take(int group, std::vector<PageOp>& ops);
  void share(int group, int32_t page);
  void give_back(int group, int32_t page);
  // The index becomes an owner of the page, or ceases to be one.
  void index(int group, int32_t page);
  void unindex(int group, int32_t page);

  bool indexed(int group, int32_t page) const {
    const auto& marks = indexed_[size_t(group)];
    return size_t(page) < marks.size() && marks[size_t(page)];
  }
  bool idle(int group, int32_t page) const { return indexed(group, page) && counts(group).owners(page) == 1; }
  // Page tables that have the page.
  int32_t tables(int group, int32_t page) const { return counts(group).owners(page) - (indexed(group, page) ? 1 : 0); }
  // Releases the memory of all free pages.
  void release_free(std::vector<PageOp>& ops);

 private:
  int64_t bytes_of(int group) const { return layout_.groups[size_t(group)].page_bytes; }
  bool release_one(std::vector<PageOp>& ops);

  CacheLayout layout_;
  int64_t budget_bytes_, used_bytes_ = 0, idle_bytes_ = 0, resident_bytes_ = 0, kept_bytes_ = 0;
  std::vector<nn::PageCounts> counts_;      // by group
  std::vector<std::vector<char>> indexed_;  // by group and page
};

}  // namespace easydel::esurge
