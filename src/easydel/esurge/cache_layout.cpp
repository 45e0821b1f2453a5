#include "easydel/esurge/cache_layout.h"

#include <algorithm>
#include <limits>

#include "easydel/base/error.h"
#include "easydel/base/text_table.h"

namespace easydel::esurge {

int64_t CacheGroup::first_visible(int64_t position) const {
  switch (kind) {
    case Kind::full:
      return 0;
    case Kind::window:
      return std::max<int64_t>(0, position - span + 1);
    case Kind::chunk:
      return position / span * span;
    case Kind::state:
      return position;
  }
  return 0;
}

int CacheLayout::state_group() const {
  for (size_t i = 0; i < groups.size(); ++i)
    if (groups[i].kind == CacheGroup::Kind::state) return int(i);
  return -1;
}

bool CacheLayout::has_full() const {
  return std::ranges::any_of(groups, [](const CacheGroup& group) { return group.kind == CacheGroup::Kind::full; });
}

int64_t CacheLayout::max_pages(const CacheGroup& group, int64_t tokens, int64_t step_tokens) const {
  if (group.kind == CacheGroup::Kind::state) return 1;
  const int64_t all = pages_of(tokens);
  return group.bounded() ? std::min(all, pages_of(group.span + step_tokens) + 1) : all;
}

int64_t CacheLayout::max_bytes(int64_t tokens, int64_t step_tokens) const {
  int64_t sum = 0;
  for (const CacheGroup& group : groups) sum += max_pages(group, tokens, step_tokens) * group.page_bytes;
  return sum;
}

int64_t CacheLayout::all_bytes(int64_t tokens) const {
  int64_t sum = 0;
  for (const CacheGroup& group : groups)
    sum += (group.kind == CacheGroup::Kind::state ? 1 : pages_of(tokens)) * group.page_bytes;
  return sum;
}

void CacheLayout::check_valid() const {
  if (page_size < 1 || page_size > 4096)
    refuse("esurge.page_size", str(page_size, " is out of range"), "expected an integer from 1 to 4096 (default 128)");
  int states = 0;
  for (const CacheGroup& group : groups) {
    check(group.page_bytes > 0, "cache layout: a page of ", group.page_bytes, " bytes");
    check(group.bounded() == (group.span > 0), "cache layout: a span of ", group.span, " tokens");
    states += group.kind == CacheGroup::Kind::state;
  }
  check(states <= 1, "cache layout: ", states, " groups of states");
}

std::string CacheBudget::describe(const CacheLayout& layout) const {
  int64_t page_bytes = 0, state_bytes = 0;
  for (const CacheGroup& group : layout.groups)
    (group.kind == CacheGroup::Kind::state ? state_bytes : page_bytes) += group.page_bytes;
  std::string text = "KV cache: " + bytes_text(uint64_t(bytes));
  if (page_bytes > 0) {
    const int64_t pages = bytes / page_bytes;
    text += str(", ", pages, " pages of ", layout.page_size, " tokens (", pages * layout.page_size, " tokens)");
  }
  if (state_bytes > 0) text += ", states of " + bytes_text(uint64_t(state_bytes)) + " a sequence";
  if (limited_by_need) text += "; all sequences at their maximum length need no more";
  return text;
}

CacheBudget cache_budget(const CacheLayout& layout, double hbm_utilization, int64_t free_bytes, int64_t max_num_seqs,
                         int64_t max_model_len) {
  layout.check_valid();
  if (!(hbm_utilization > 0 && hbm_utilization <= 1))
    refuse("esurge.hbm_utilization", str(hbm_utilization, " is out of range"),
           "expected a number above 0 and at most 1 (default 0.8)");
  const auto memory = int64_t(hbm_utilization * double(free_bytes));
  const int64_t least = layout.all_bytes(1);
  int64_t need = 0;
  if (__builtin_mul_overflow(max_num_seqs, layout.all_bytes(max_model_len), &need))
    need = std::numeric_limits<int64_t>::max();
  if (memory < least)
    refuse("esurge.hbm_utilization",
           str(hbm_utilization, " of ", bytes_text(uint64_t(free_bytes)), " free memory is ",
               bytes_text(uint64_t(memory)), "; one page of each kind takes ", bytes_text(uint64_t(least))),
           "raise esurge.hbm_utilization, lower esurge.page_size, or free memory");
  return {std::min(memory, need), need < memory};
}

}  // namespace easydel::esurge
