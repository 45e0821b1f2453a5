#include "easydel/esurge/cache_manager.h"

#include <algorithm>
#include <utility>

#include "easydel/base/error.h"

namespace easydel::esurge {

CacheManager::CacheManager(CacheLayout layout, int64_t budget_bytes, bool index)
    : pools_(std::move(layout), budget_bytes),
      index_(pools_),
      has_index_(index),
      has_pages_(std::ranges::any_of(pools_.layout().groups,
                                     [](const CacheGroup& group) { return group.kind != CacheGroup::Kind::state; })),
      state_group_(pools_.layout().state_group()) {}

int64_t CacheManager::free_bytes() const {
  return pools_.budget_bytes() - (pools_.used_bytes() - pools_.idle_bytes()) - reserved_bytes_;
}

int64_t CacheManager::held(const SequencePages& pages, int group) const {
  return int64_t(pages.tables[size_t(group)].size()) - pages.first[size_t(group)];
}

void CacheManager::share(int group, int32_t page) {
  pools_.share(group, page);
  if (pools_.indexed(group, page)) index_.changed(group, page, true);
}

void CacheManager::give_back(int group, int32_t page) {
  pools_.give_back(group, page);
  if (pools_.indexed(group, page)) index_.changed(group, page, true);
  ++version_;
}

int32_t CacheManager::take(int group, std::vector<PageOp>& ops) {
  while (!pools_.fits(group)) check(index_.evict_one(), "cache: there is no room for a page that was reserved");
  return pools_.take(group, ops);
}

// Sets what is still reserved for a sequence by what it holds. Where that would promise more than there is (a page that
// a window has passed stays with other sequences), the quota shrinks instead.
void CacheManager::reserve(SequencePages& pages) {
  reserved_bytes_ -= std::exchange(pages.reserved_bytes, 0);
  int64_t sum = 0;
  for (int g = 0; g < groups(); ++g) {
    int64_t& quota = pages.quota[size_t(g)];
    const int64_t missing = quota - held(pages, g);
    if (missing <= 0) continue;
    const int64_t possible = std::clamp<int64_t>((free_bytes() - sum) / bytes_of(g), 0, missing);
    quota -= missing - possible;
    sum += possible * bytes_of(g);
  }
  pages.reserved_bytes = sum;
  reserved_bytes_ += sum;
}

// Pages that are reserved for one sequence that continues the prompt.
int64_t CacheManager::fork_pages(const Demand& demand, int g) const {
  return std::min(demand.fork_pages,
                  layout().max_pages(layout().groups[size_t(g)], demand.max_tokens, demand.step_tokens));
}

std::vector<int64_t> CacheManager::quota_of(const Demand& demand) const {
  std::vector<int64_t> quota;
  for (int g = 0; g < groups(); ++g) {
    const CacheGroup& group = layout().groups[size_t(g)];
    const int64_t all = layout().max_pages(group, demand.max_tokens, demand.step_tokens);
    const int64_t now = layout().max_pages(group, demand.tokens, demand.step_tokens) + 1;
    quota.push_back(std::min(now, all) + demand.forks * fork_pages(demand, g));
  }
  return quota;
}

int64_t CacheManager::cached(const CacheRoot& root, const TokenKeys& keys, int64_t limit) const {
  return has_index_ ? index_.match(root, keys, limit).tokens : 0;
}

void CacheManager::find_scores(const CacheRoot& root, const TokenKeys& keys) const {
  if (has_index_) index_.find_scores(root, keys, *keys.scores);
}

// The first whole page of the match that the sequence will share.
int64_t CacheManager::first_page(const PrefixIndex::Match& match, int group) const {
  const int64_t first = layout().groups[size_t(group)].first_visible(match.tokens) / layout().page_size;
  return std::min(first, int64_t(match.path.size()));
}

// Bytes that must be free for a sequence that begins with this match: its quota, and pages that are idle now. Those
// that are only copied are needed until then.
int64_t CacheManager::need_of(const PrefixIndex::Match& match, const Demand& demand) const {
  const std::vector<int64_t> quota = quota_of(demand);
  int64_t need = 0;
  for (int g = 0; g < groups(); ++g) {
    const CacheGroup& group = layout().groups[size_t(g)];
    int64_t count = quota[size_t(g)];
    if (g == state_group_) {
      count += match.state >= 0 ? 1 : 0;
    } else {
      for (auto i = size_t(first_page(match, g)); i < match.path.size(); ++i)
        if (!pools_.idle(g, match.path[i]->pages[size_t(g)])) --count;
      if (match.partial && pools_.idle(g, match.partial->pages[size_t(g)])) ++count;
    }
    if (demand.count_passed && group.bounded())
      count += layout().pages_of(demand.tokens) - layout().max_pages(group, demand.tokens, demand.step_tokens);
    need += std::max<int64_t>(count, 0) * bytes_of(g);
  }
  return need;
}

std::optional<int64_t> CacheManager::admit(SequencePages& pages, const CacheRoot& root, const TokenKeys& keys,
                                           int64_t limit, const Demand& demand, std::vector<PageOp>& ops) {
  check(pages.empty(), "cache: a sequence is admitted twice");
  PrefixIndex::Match match;
  if (has_index_) match = index_.match(root, keys, limit);
  // A hit whose last page or state must be copied needs both copies for a moment. Where that is too much, less is
  // shared.
  while (need_of(match, demand) > free_bytes()) {
    if (!match.partial && match.state < 0) return std::nullopt;
    match = index_.match(root, keys, match.state < 0 ? match.tokens - match.rows : 0);
  }
  std::vector<PageOp> copies;
  pages.quota = quota_of(demand);
  pages.tables.resize(size_t(groups()));
  for (int g = 0; g < groups(); ++g) {
    pages.first.push_back(g == state_group_ ? 0 : first_page(match, g));
    if (g == state_group_) {
      if (match.state >= 0) pools_.share(g, match.state);
      copies.push_back({match.state >= 0 ? PageOp::Kind::copy : PageOp::Kind::clear, g, match.state, -1, 0});
      continue;
    }
    auto& table = pages.tables[size_t(g)];
    for (size_t i = 0; i < match.path.size(); ++i) {
      table.push_back(int64_t(i) < pages.first.back() ? -1 : match.path[i]->pages[size_t(g)]);
      if (table.back() >= 0) share(g, table.back());
    }
    if (match.partial) {
      share(g, match.partial->pages[size_t(g)]);
      copies.push_back({PageOp::Kind::copy, g, match.partial->pages[size_t(g)], -1, match.rows});
    }
  }
  if (has_index_) {
    pages.node = match.path.empty() ? index_.root(root) : match.path.back();
    pages.indexed = int64_t(match.path.size()) * layout().page_size;
    index_.use(pages.node);
  }
  for (PageOp& copy : copies) {
    copy.to = take(copy.group, ops);
    pages.tables[size_t(copy.group)].push_back(copy.to);
    ops.push_back(copy);
  }
  for (const PageOp& copy : copies) {
    if (copy.group != state_group_)
      give_back(copy.group, copy.from);
    else if (copy.from >= 0)
      pools_.give_back(copy.group, copy.from);
  }
  reserve(pages);
  return match.tokens;
}

bool CacheManager::extend(SequencePages& pages, int64_t from, int64_t to, std::vector<PageOp>& ops) {
  const int64_t page_size = layout().page_size;
  const auto shared_at = [&](int g) {
    const auto& table = pages.tables[size_t(g)];
    const auto at = size_t(from / page_size);
    return from % page_size > 0 && at < table.size() && table[at] >= 0 && pools_.tables(g, table[at]) > 1;
  };
  int64_t need = 0;
  for (int g = 0; g < groups(); ++g) {
    if (g == state_group_) continue;
    const auto have = int64_t(pages.tables[size_t(g)].size());
    need += (std::max<int64_t>(layout().pages_of(to) - have, 0) + (shared_at(g) ? 1 : 0)) * bytes_of(g);
  }
  if (need == 0) return true;
  if (need > free_bytes() + pages.reserved_bytes) return false;
  for (int g = 0; g < groups(); ++g) {
    if (g == state_group_) continue;
    auto& table = pages.tables[size_t(g)];
    if (shared_at(g)) {
      int32_t& page = table[size_t(from / page_size)];
      const int32_t copy = take(g, ops);
      ops.push_back({PageOp::Kind::copy, g, page, copy, from % page_size});
      give_back(g, page);
      page = copy;
      --pages.quota[size_t(g)];
    }
    // A chunk that ended with the last page sees none of the pages in between.
    while (int64_t(table.size()) < layout().pages_of(to)) table.push_back(take(g, ops));
  }
  reserve(pages);
  return true;
}

void CacheManager::fork(SequencePages& from, SequencePages& to, int64_t computed, const Demand& demand,
                        std::vector<PageOp>& ops, std::vector<PageOp>& after) {
  to.tables = from.tables, to.first = from.first, to.node = from.node, to.indexed = from.indexed;
  to.quota.assign(size_t(groups()), 0);
  if (to.node) index_.use(to.node);
  for (int g = 0; g < groups(); ++g)
    for (const int32_t page : to.tables[size_t(g)])
      if (g != state_group_ && page >= 0) share(g, page);
  give_back_passed(to, computed);
  for (int g = 0; g < groups(); ++g) {
    const int64_t extra = fork_pages(demand, g);
    from.quota[size_t(g)] -= extra;
    if (g != state_group_) to.quota[size_t(g)] = held(to, g) + extra;
  }
  reserve(from);
  if (state_group_ >= 0) {
    int32_t& slot = to.tables[size_t(state_group_)][0];
    const int32_t source = slot;
    slot = take(state_group_, ops);
    to.quota[size_t(state_group_)] = 1;
    after.push_back({PageOp::Kind::copy, state_group_, source, slot, 0});
  }
  reserve(to);
}

// Enters the page after the indexed ones, as far as its first `count` tokens. Of pages that the index has already, the
// sequence takes the index's.
PrefixIndex::Node* CacheManager::index_page(SequencePages& pages, const TokenKeys& keys, int64_t count) {
  const auto at = size_t(pages.indexed / layout().page_size);
  tokens_.clear();
  for (int64_t i = 0; i < count; ++i) tokens_.push_back(keys[pages.indexed + i]);
  mine_.assign(size_t(groups()), -1);
  for (int g = 0; g < groups(); ++g)
    if (g != state_group_) mine_[size_t(g)] = pages.tables[size_t(g)][at];
  // Before the node is there: it may have nothing but pages that are evicted.
  if (keys.scores) index_.make_score_room(pages.indexed, count, *keys.scores);
  PrefixIndex::Node* const node = index_.insert(pages.node, tokens_, mine_);
  for (int g = 0; g < groups(); ++g)
    if (g != state_group_) pages.tables[size_t(g)][at] = mine_[size_t(g)];
  if (keys.scores) index_.keep_scores(*node, pages.indexed, count, *keys.scores);
  ++version_;
  return node;
}

// Enters all whole pages up to `computed`.
void CacheManager::index_pages(SequencePages& pages, const TokenKeys& keys, int64_t computed) {
  const int64_t page_size = layout().page_size;
  while (pages.indexed + page_size <= computed) {
    PrefixIndex::Node* const node = index_page(pages, keys, page_size);
    index_.use(node);
    index_.forget(pages.node);
    pages.node = node;
    pages.indexed += page_size;
  }
}

// Enters the whole pages, and the tokens after them as part of a page. Returns the node that ends at `computed`.
PrefixIndex::Node* CacheManager::index_rest(SequencePages& pages, const TokenKeys& keys, int64_t computed) {
  index_pages(pages, keys, computed);
  const int64_t rest = computed - pages.indexed;
  return rest == 0 ? pages.node : index_page(pages, keys, rest);
}

void CacheManager::advance(SequencePages& pages, const TokenKeys& keys, int64_t computed) {
  // Without pages only the places of kept states enter the index, and nothing goes on from another place than those.
  if (has_index_ && has_pages_) {
    if (state_group_ < 0 && computed <= int64_t(keys.prompt.size()))
      index_rest(pages, keys, computed);
    else
      index_pages(pages, keys, computed);
  }
  if (give_back_passed(pages, computed)) reserve(pages);
}

// Of windows and chunks: pages that no token from `computed` on sees. Returns whether there were any.
bool CacheManager::give_back_passed(SequencePages& pages, int64_t computed) {
  bool passed = false;
  for (int g = 0; g < groups(); ++g) {
    const CacheGroup& group = layout().groups[size_t(g)];
    if (!group.bounded()) continue;
    auto& table = pages.tables[size_t(g)];
    const int64_t first = std::min(group.first_visible(computed) / layout().page_size, int64_t(table.size()));
    for (int64_t& at = pages.first[size_t(g)]; at < first; ++at) {
      give_back(g, std::exchange(table[size_t(at)], -1));
      passed = true;
    }
  }
  return passed;
}

void CacheManager::truncate(SequencePages& pages, int64_t tokens) {
  bool changed = false;
  for (int g = 0; g < groups(); ++g) {
    if (g == state_group_) continue;
    auto& table = pages.tables[size_t(g)];
    for (; int64_t(table.size()) > layout().pages_of(tokens); changed = true) {
      give_back(g, table.back());
      table.pop_back();
    }
  }
  if (changed) reserve(pages);
}

int32_t CacheManager::copy_state(const SequencePages& pages, std::vector<PageOp>& ops, std::vector<PageOp>& after) {
  if (state_group_ < 0 || !has_index_ || free_bytes() < bytes_of(state_group_)) return -1;
  const int32_t slot = index_.take_state(ops);
  if (slot >= 0) after.push_back({PageOp::Kind::copy, state_group_, pages.tables[size_t(state_group_)][0], slot, 0});
  return slot;
}

void CacheManager::keep_state(SequencePages& pages, const TokenKeys& keys, int64_t computed, int32_t slot) {
  PrefixIndex::Node* const node = index_rest(pages, keys, computed);
  index_.keep_state(node, rows_at(computed), slot);
  ++version_;
}

bool CacheManager::save_state(SequencePages& pages, std::vector<PageOp>& ops) {
  if (state_group_ < 0) return true;
  if (free_bytes() < bytes_of(state_group_)) return false;
  pages.saved_state = take(state_group_, ops);
  ops.push_back({PageOp::Kind::copy, state_group_, pages.tables[size_t(state_group_)][0], pages.saved_state, 0});
  return true;
}

void CacheManager::restore_state(SequencePages& pages) {
  if (pages.saved_state < 0) return;
  std::swap(pages.tables[size_t(state_group_)][0], pages.saved_state);
  drop_saved_state(pages);
}

void CacheManager::drop_saved_state(SequencePages& pages) {
  if (pages.saved_state >= 0) give_back(state_group_, std::exchange(pages.saved_state, -1));
}

void CacheManager::leave(SequencePages& pages, const TokenKeys& keys, int64_t computed, bool has_state) {
  if (pages.empty()) return;
  drop_saved_state(pages);
  reserved_bytes_ -= std::exchange(pages.reserved_bytes, 0);
  if (has_index_ && computed > 0) {
    if (has_pages_) index_rest(pages, keys, computed);
    if (has_state && state_group_ >= 0) {
      PrefixIndex::Node* const node = index_rest(pages, keys, computed);
      const int64_t rows = rows_at(computed);
      index_.use(node);
      if (!index_.has_state(node, rows) && index_.make_state_room())
        index_.keep_state(node, rows, std::exchange(pages.tables[size_t(state_group_)][0], -1));
      index_.forget(node);
    }
  }
  for (int g = 0; g < groups(); ++g) {
    auto& table = pages.tables[size_t(g)];
    for (size_t i = table.size(); i-- > 0;)
      if (table[i] >= 0) give_back(g, table[i]);
  }
  if (pages.node) index_.forget(pages.node);
  pages = {};
  ++version_;
}

void CacheManager::drop_index(std::vector<PageOp>& ops) {
  while (index_.evict_one()) {
  }
  pools_.release_free(ops);
  ++version_;
}

std::vector<PrefixIndex::Restored> CacheManager::restore_index(const SavedPrefixIndex& saved,
                                                               std::vector<PageOp>& ops) {
  check(reserved_bytes_ == 0, "cache: the index is restored while sequences run");
  if (!has_index_) return {};
  ++version_;
  return index_.restore(saved, ops);
}

void CacheManager::check_all(std::span<const SequencePages* const> running, std::span<const int32_t> kept) const {
  std::vector<std::vector<int32_t>> owners;
  for (int g = 0; g < groups(); ++g) owners.emplace_back(size_t(pools_.counts(g).ids()), 0);
  index_.check_tree(owners);
  std::vector<std::vector<int32_t>> indexed = owners;
  for (const int32_t slot : kept) ++owners[size_t(state_group_)][size_t(slot)];
  int64_t reserved = 0;
  for (const SequencePages* pages : running) {
    reserved += pages->reserved_bytes;
    if (pages->empty()) continue;
    if (pages->saved_state >= 0) ++owners[size_t(state_group_)][size_t(pages->saved_state)];
    for (int g = 0; g < groups(); ++g) {
      const auto& table = pages->tables[size_t(g)];
      for (size_t i = 0; i < table.size(); ++i) {
        check((table[i] >= 0) == (int64_t(i) >= pages->first[size_t(g)]), "cache: a table's first page is wrong");
        if (table[i] >= 0) ++owners[size_t(g)][size_t(table[i])];
      }
    }
  }
  int64_t used = index_.score_bytes(), idle = used, resident = 0;
  for (int g = 0; g < groups(); ++g) {
    const nn::PageCounts& counts = pools_.counts(g);
    counts.check_states();
    resident += counts.resident() * bytes_of(g);
    for (int32_t page = 0; page < int32_t(counts.ids()); ++page) {
      const int32_t found = owners[size_t(g)][size_t(page)];
      check(counts.owners(page) == found, "cache: page ", page, " of group ", g, " has ", counts.owners(page),
            " owners, but tables and index have it ", found, " times");
      check(pools_.indexed(g, page) == (indexed[size_t(g)][size_t(page)] == 1) && indexed[size_t(g)][size_t(page)] <= 1,
            "cache: page ", page, " of group ", g, " is in the index more or less often than marked");
      used += found > 0 ? bytes_of(g) : 0;
      idle += pools_.idle(g, page) ? bytes_of(g) : 0;
    }
  }
  check(used == pools_.used_bytes() && idle == pools_.idle_bytes() && resident == pools_.resident_bytes(),
        "cache: counted ", used, " bytes used, ", idle, " idle, ", resident, " resident, not ", pools_.used_bytes(),
        ", ", pools_.idle_bytes(), ", ", pools_.resident_bytes());
  check(reserved == reserved_bytes_, "cache: ", reserved_bytes_, " bytes are reserved, not ", reserved);
  check(resident <= pools_.budget_bytes() && free_bytes() >= 0, "cache: more is used and promised than the budget has");
}

}  // namespace easydel::esurge
