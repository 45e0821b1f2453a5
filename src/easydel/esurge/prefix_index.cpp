#include "easydel/esurge/prefix_index.h"

#include <algorithm>
#include <utility>

#include "easydel/base/error.h"

namespace easydel::esurge {
namespace {

using Tokens = std::span<const uint32_t>;

bool less(Tokens a, Tokens b) { return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end()); }

int64_t common_rows(Tokens a, Tokens b) {
  const size_t size = std::min(a.size(), b.size());
  return std::mismatch(a.begin(), a.begin() + ptrdiff_t(size), b.begin()).first - a.begin();
}

}  // namespace

int64_t TokenKeys::common(const TokenKeys& other, int64_t limit) const {
  limit = std::min({limit, size(), other.size()});
  int64_t i = 0;
  while (i < limit && (*this)[i] == other[i]) ++i;
  return i;
}

bool PrefixIndex::NodeOrder::operator()(const std::unique_ptr<Node>& a, const std::unique_ptr<Node>& b) const {
  return less(a->tokens, b->tokens);
}
bool PrefixIndex::NodeOrder::operator()(const std::unique_ptr<Node>& a, Tokens b) const { return less(a->tokens, b); }
bool PrefixIndex::NodeOrder::operator()(Tokens a, const std::unique_ptr<Node>& b) const { return less(a, b->tokens); }

PrefixIndex::PrefixIndex(PagePools& pools)
    : pools_(pools),
      has_full_(pools.layout().has_full()),
      state_group_(pools.layout().state_group()),
      node_of_(pools.layout().groups.size()) {
  if (state_group_ >= 0) state_budget_ = pools.budget_bytes() / 4;
}

// Without recursion: with pages of one token the tree is as deep as the longest sequence.
PrefixIndex::~PrefixIndex() {
  std::vector<std::unique_ptr<Node>> nodes;
  for (auto& [root, node] : roots_) nodes.push_back(std::move(node));
  while (!nodes.empty()) {
    const std::unique_ptr<Node> node = std::move(nodes.back());
    nodes.pop_back();
    while (!node->children.empty()) nodes.push_back(std::move(node->children.extract(node->children.begin()).value()));
  }
}

PrefixIndex::Node* PrefixIndex::root(const CacheRoot& root) {
  const auto [place, is_new] = roots_.try_emplace(root);
  if (is_new) {
    place->second = std::make_unique<Node>();
    place->second->root = &place->first;
  }
  return place->second.get();
}

PrefixIndex::Match PrefixIndex::match(const CacheRoot& root, const TokenKeys& keys, int64_t limit) const {
  Match match;
  const auto found = roots_.find(root);
  limit = std::min(limit, keys.size());
  if (found == roots_.end() || limit <= 0) return match;
  const Node* at = found->second.get();
  const int64_t page_size = pools_.layout().page_size;
  std::vector<uint32_t> tokens;
  for (int64_t begin = 0; begin < limit; begin += page_size) {
    tokens.clear();
    for (int64_t i = begin; i < std::min(begin + page_size, limit); ++i) tokens.push_back(keys[i]);
    // The child with the longest common beginning is a neighbour of where these tokens would stand.
    const auto next = at->children.lower_bound(Tokens(tokens));
    Node* best = nullptr;
    int64_t rows = 0;
    const auto look = [&](Node* child) {
      if (const int64_t both = common_rows(child->tokens, tokens); both > rows) best = child, rows = both;
    };
    if (next != at->children.end()) look(next->get());
    if (next != at->children.begin()) look(std::prev(next)->get());
    if (rows < page_size) {
      match.partial = best, match.rows = rows;
      break;
    }
    match.path.push_back(best);
    at = best;
  }
  match.tokens = int64_t(match.path.size()) * page_size + match.rows;
  limit_to_pages(match);
  return match;
}

// Shortens the match to the last place where the pages of every window and chunk are there, and a state.
void PrefixIndex::limit_to_pages(Match& match) const {
  const CacheLayout& layout = pools_.layout();
  const int64_t page_size = layout.page_size;
  const auto nodes = int64_t(match.path.size()) + (match.partial ? 1 : 0);
  const auto node = [&](int64_t i) { return i < int64_t(match.path.size()) ? match.path[size_t(i)] : match.partial; };
  // runs[group][i]: of pages that are there without a gap, ending with that of node i.
  std::vector<std::vector<int64_t>> runs(layout.groups.size());
  for (size_t g = 0; g < runs.size(); ++g) {
    if (!layout.groups[g].bounded()) continue;
    for (int64_t i = 0; i < nodes; ++i) runs[g].push_back(node(i)->pages[g] < 0 ? 0 : (i > 0 ? runs[g].back() : 0) + 1);
  }
  const auto has_pages = [&](int64_t i, int64_t tokens) {
    for (size_t g = 0; g < runs.size(); ++g) {
      if (runs[g].empty()) continue;
      // Part of a page is continued, so all of its rows must be there, seen or not.
      const int64_t first = layout.groups[g].first_visible(tokens);
      const int64_t pages = first < tokens ? i - first / page_size + 1 : (tokens % page_size > 0 ? 1 : 0);
      if (runs[g][size_t(i)] < pages) return false;
    }
    return true;
  };
  const auto end_at = [&](int64_t i, int64_t rows) {
    match.tokens = i * page_size + rows;
    Node* last = node(i);
    match.partial = rows < page_size ? last : nullptr;
    match.rows = rows < page_size ? rows : 0;
    match.path.resize(size_t(rows < page_size ? i : i + 1));
  };
  for (int64_t i = nodes; i-- > 0;) {
    const int64_t rows = i < int64_t(match.path.size()) ? page_size : match.rows;
    if (state_group_ < 0) {
      if (has_pages(i, i * page_size + rows)) return end_at(i, rows);
      continue;
    }
    const auto& states = node(i)->states;
    for (size_t s = states.size(); s-- > 0;)
      if (states[s].rows <= rows && has_pages(i, i * page_size + states[s].rows)) {
        match.state = states[s].slot;
        return end_at(i, states[s].rows);
      }
  }
  match = {};
}

void PrefixIndex::forget(Node* node) {
  check(node->users > 0, "prefix index: a node is forgotten that nobody uses");
  --node->users;
  prune(node);
}

// Whether a page, a state or a whole node can be given up: only the index owns it, and nothing hangs on it.
bool PrefixIndex::can_evict(const Node& node, int place) const {
  if (place < whole())
    return !is_full(place) && node.pages[size_t(place)] >= 0 && pools_.idle(place, node.pages[size_t(place)]);
  if (!has_full_ || !node.children.empty() || node.users > 0) return false;
  for (int g = 0; g < whole(); ++g)
    if (is_full(g) && !pools_.idle(g, node.pages[size_t(g)])) return false;
  return true;
}

void PrefixIndex::refresh(Node& node, int place) {
  if (node.root) return;
  const bool can = can_evict(node, place);
  char& listed = node.evictable[size_t(place)];
  if (can == bool(listed)) return;
  listed = can;
  if (can)
    evictable_.emplace(node.stamps[size_t(place)], Entry{&node, place, 0});
  else
    evictable_.erase(node.stamps[size_t(place)]);
}

void PrefixIndex::touch(Node& node, int place) {
  unlist(node, place);
  node.stamps[size_t(place)] = ++clock_;
  refresh(node, place);
}

void PrefixIndex::changed(int group, int32_t page, bool used) {
  Node& node = *node_of_[size_t(group)][size_t(page)];
  const int place = is_full(group) ? whole() : group;
  if (used)
    touch(node, place);
  else
    refresh(node, place);
}

void PrefixIndex::set_page(Node& node, int group, int32_t page) {
  node.pages[size_t(group)] = page;
  pools_.index(group, page);
  auto& nodes = node_of_[size_t(group)];
  if (size_t(page) >= nodes.size()) nodes.resize(size_t(page) + 1);
  nodes[size_t(page)] = &node;
}

void PrefixIndex::unlist(Node& node, int place) {
  if (std::exchange(node.evictable[size_t(place)], 0)) evictable_.erase(node.stamps[size_t(place)]);
}

void PrefixIndex::drop_page(Node& node, int group) {
  int32_t& page = node.pages[size_t(group)];
  if (page < 0) return;
  unlist(node, is_full(group) ? whole() : group);
  pools_.unindex(group, page);
  node_of_[size_t(group)][size_t(page)] = nullptr;
  page = -1;
}

PrefixIndex::Node* PrefixIndex::insert(Node* parent, Tokens tokens, std::vector<int32_t>& mine) {
  const int groups = whole();
  auto next = parent->children.lower_bound(tokens);
  Node* node = nullptr;
  if (next != parent->children.end() && common_rows((*next)->tokens, tokens) == int64_t(tokens.size())) {
    node = next->get();
    // A longer page serves as well, but it does not take the place of the sequence's own.
    if (node->tokens.size() > tokens.size()) return node;
  } else if (next != parent->children.begin() &&
             common_rows((*std::prev(next))->tokens, tokens) == int64_t((*std::prev(next))->tokens.size())) {
    // A sibling with fewer of these tokens grows. Its pages have too few rows, unless they are the sequence's own.
    auto handle = parent->children.extract(std::prev(next));
    node = handle.value().get();
    node->tokens.assign(tokens.begin(), tokens.end());
    parent->children.insert(std::move(handle));
    for (int g = 0; g < groups; ++g)
      if (node->pages[size_t(g)] != mine[size_t(g)]) drop_page(*node, g);
  } else {
    auto made = std::make_unique<Node>();
    node = made.get();
    node->parent = parent;
    node->tokens.assign(tokens.begin(), tokens.end());
    node->pages.assign(size_t(groups), -1);
    node->stamps.assign(size_t(groups) + 1, 0);
    node->evictable.assign(size_t(groups) + 1, 0);
    for (uint64_t& stamp : node->stamps) stamp = ++clock_;
    parent->children.insert(next, std::move(made));
    ++nodes_;
    refresh(*parent, groups);
  }
  for (int g = 0; g < groups; ++g) {
    int32_t& own = mine[size_t(g)];
    const int32_t held = node->pages[size_t(g)];
    if (g == state_group_ || own < 0 || own == held) continue;
    if (held < 0) {
      set_page(*node, g, own);
    } else if (int64_t(tokens.size()) == pools_.layout().page_size) {
      // Both pages hold the same bits, and one of them is enough. (Part of a page is not: the sequence goes on
      // writing.)
      if (pools_.idle(g, held) && pools_.tables(g, own) > 1) {
        drop_page(*node, g);
        set_page(*node, g, own);
      } else {
        pools_.share(g, held);
        pools_.give_back(g, own);
        own = held;
      }
    }
  }
  for (int place = 0; place <= groups; ++place)
    if (place != state_group_) touch(*node, place);
  return node;
}

bool PrefixIndex::make_state_room() {
  const int64_t bytes = pools_.layout().groups[size_t(state_group_)].page_bytes;
  while (state_bytes_ + bytes > state_budget_) {
    if (states_.empty()) return false;
    evict_state();
  }
  state_bytes_ += bytes;
  return true;
}

int32_t PrefixIndex::take_state(std::vector<PageOp>& ops) {
  if (!make_state_room()) return -1;
  while (!pools_.fits(state_group_)) check(evict_one(), "prefix index: there is no room for a state to keep");
  return pools_.take(state_group_, ops);
}

bool PrefixIndex::has_state(const Node* node, int64_t rows) const {
  return std::ranges::find(node->states, rows, &KeptState::rows) != node->states.end();
}

void PrefixIndex::give_back_state(int32_t slot) {
  state_bytes_ -= pools_.layout().groups[size_t(state_group_)].page_bytes;
  pools_.give_back(state_group_, slot);
}

void PrefixIndex::keep_state(Node* node, int64_t rows, int32_t slot) {
  auto at = std::ranges::lower_bound(node->states, rows, {}, &KeptState::rows);
  const bool there = at != node->states.end() && at->rows == rows;
  if (there || node->root) {
    if (there) {
      states_.erase(at->stamp);
      at->stamp = ++clock_;
      states_.emplace(at->stamp, Entry{node, state_group_, rows});
    }
    return give_back_state(slot);
  }
  node->states.insert(at, {rows, slot, ++clock_});
  states_.emplace(clock_, Entry{node, state_group_, rows});
  pools_.index(state_group_, slot);
  pools_.give_back(state_group_, slot);
}

void PrefixIndex::drop_state(Node& node, size_t i) {
  const KeptState state = node.states[i];
  states_.erase(state.stamp);
  node.states.erase(node.states.begin() + ptrdiff_t(i));
  state_bytes_ -= pools_.layout().groups[size_t(state_group_)].page_bytes;
  pools_.unindex(state_group_, state.slot);
}

// Returns its parent.
PrefixIndex::Node* PrefixIndex::remove(Node& node) {
  Node* parent = node.parent;
  for (int g = 0; g < whole(); ++g)
    if (g != state_group_) drop_page(node, g);
  while (!node.states.empty()) drop_state(node, node.states.size() - 1);
  drop_scores(node);
  parent->children.erase(parent->children.find(Tokens(node.tokens)));
  --nodes_;
  return parent;
}

// Removes a node that nothing is found by any more, and its ancestors like it.
void PrefixIndex::prune(Node* node) {
  while (node->users == 0 && node->children.empty()) {
    if (node->root) {
      roots_.erase(roots_.find(*node->root));
      return;
    }
    if (has_full_) return refresh(*node, whole());
    const bool empty = node->states.empty() && std::ranges::all_of(node->pages, [](int32_t page) { return page < 0; });
    if (!empty) return;
    node = remove(*node);
  }
}

void PrefixIndex::evict_state() {
  const Entry oldest = states_.begin()->second;
  const auto& states = oldest.node->states;
  drop_state(*oldest.node, size_t(std::ranges::find(states, oldest.rows, &KeptState::rows) - states.begin()));
  prune(oldest.node);
}

bool PrefixIndex::evict_one() {
  const bool page = !evictable_.empty(), state = !states_.empty();
  if (!page && !state) {
    if (scored_.empty()) return false;
    drop_scores(*scored_.begin()->second);
    return true;
  }
  ++evictions_;
  if (!page || (state && states_.begin()->first < evictable_.begin()->first)) {
    evict_state();
    return true;
  }
  const Entry entry = evictable_.begin()->second;
  if (entry.place == whole()) {
    prune(remove(*entry.node));
  } else {
    drop_page(*entry.node, entry.place);
    prune(entry.node);
  }
  return true;
}

void PrefixIndex::check_tree(std::vector<std::vector<int32_t>>& owners) const {
  int64_t nodes = 0;
  size_t entries = 0, states = 0;
  std::vector<const Node*> left;
  for (const auto& [key, node] : roots_) {
    check(node->root == &key && (node->users > 0 || !node->children.empty()), "prefix index: an empty root stays");
    left.push_back(node.get());
  }
  while (!left.empty()) {
    const Node& node = *left.back();
    left.pop_back();
    if (!node.root) {
      check_node(node, owners);
      ++nodes, states += node.states.size();
      for (const char can : node.evictable) entries += size_t(can);
    }
    const Node* before = nullptr;
    for (const auto& child : node.children) {
      check(child->parent == &node, "prefix index: a child has another parent");
      check(!before || (less(before->tokens, child->tokens) &&
                        common_rows(before->tokens, child->tokens) < int64_t(before->tokens.size())),
            "prefix index: siblings are out of order, or one is the beginning of another");
      before = child.get();
      left.push_back(before);
    }
  }
  check(nodes == nodes_, "prefix index: ", nodes_, " nodes are counted, ", nodes, " are there");
  check(entries == evictable_.size(), "prefix index: ", evictable_.size(), " entries can be evicted, not ", entries);
  check(states == states_.size(), "prefix index: ", states_.size(), " states are listed, not ", states);
}

void PrefixIndex::check_node(const Node& node, std::vector<std::vector<int32_t>>& owners) const {
  const CacheLayout& layout = pools_.layout();
  check(!node.tokens.empty() && int64_t(node.tokens.size()) <= layout.page_size, "prefix index: a node's size");
  check(node.children.empty() || int64_t(node.tokens.size()) == layout.page_size,
        "prefix index: part of a page has children");
  for (int place = 0; place <= whole(); ++place) {
    const bool listed = node.evictable[size_t(place)] != 0;
    check(listed == can_evict(node, place), "prefix index: what can be evicted is wrong");
    const auto entry = evictable_.find(node.stamps[size_t(place)]);
    check(!listed || (entry != evictable_.end() && entry->second.node == &node && entry->second.place == place),
          "prefix index: an entry to evict is not listed");
  }
  for (int g = 0; g < whole(); ++g) {
    const int32_t page = node.pages[size_t(g)];
    check(!is_full(g) || page >= 0, "prefix index: a node lacks a page of a full group");
    if (page < 0) continue;
    check(pools_.indexed(g, page) && node_of_[size_t(g)][size_t(page)] == &node, "prefix index: page ", page,
          " of group ", g, " is not marked as the node's");
    ++owners[size_t(g)][size_t(page)];
  }
  for (const KeptState& state : node.states) {
    ++owners[size_t(state_group_)][size_t(state.slot)];
    check(state.rows >= 1 && state.rows <= int64_t(node.tokens.size()) && states_.contains(state.stamp) &&
              pools_.idle(state_group_, state.slot),
          "prefix index: a kept state is wrong");
  }
}

}  // namespace easydel::esurge
