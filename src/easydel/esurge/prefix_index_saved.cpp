// The prefix index to data and back.
#include <algorithm>
#include <numeric>
#include <utility>

#include "easydel/base/error.h"
#include "easydel/esurge/prefix_index.h"
#include "easydel/esurge/saved_prefix_index.h"

namespace easydel::esurge {
namespace {

// Which nodes and states of a saved index are entered: as much as fits, what was used last first.
struct Selection {
  std::vector<char> nodes;
  std::vector<std::vector<char>> states;  // by node
};

class Selector {
 public:
  Selector(const SavedPrefixIndex& saved, const PagePools& pools, int64_t state_bytes)
      : saved_(saved),
        layout_(pools.layout()),
        room_(pools.budget_bytes() - pools.used_bytes()),
        state_room_(state_bytes) {}

  Selection select() {
    Selection out;
    out.nodes.assign(saved_.nodes.size(), 0);
    for (const auto& node : saved_.nodes) out.states.emplace_back(node.states.size(), 0);
    select_nodes(out);
    select_states(out);
    if (!layout_.has_full()) drop_empty_nodes(out);
    return out;
  }

 private:
  // A node was used at least when its descendants were, so it comes before them.
  void select_nodes(Selection& out) {
    std::vector<uint64_t> stamps;
    for (const auto& node : saved_.nodes) stamps.push_back(node.stamp);
    for (size_t i = stamps.size(); i-- > 0;)
      if (const int32_t parent = saved_.nodes[i].parent; parent >= 0)
        stamps[size_t(parent)] = std::max(stamps[size_t(parent)], stamps[i]);
    std::vector<size_t> order(stamps.size());
    std::iota(order.begin(), order.end(), size_t(0));
    std::ranges::stable_sort(order, std::greater(), [&](size_t i) { return stamps[i]; });
    for (const size_t i : order) {
      const auto& node = saved_.nodes[i];
      int64_t bytes = 0;
      for (size_t g = 0; g < layout_.groups.size(); ++g)
        if (node.pages[g] >= 0) bytes += layout_.groups[g].page_bytes;
      const bool has_parent = node.parent < 0 || out.nodes[size_t(node.parent)];
      if (!has_parent || bytes > room_) continue;
      out.nodes[i] = 1;
      room_ -= bytes;
    }
  }

  void select_states(Selection& out) {
    if (layout_.state_group() < 0) return;
    const int64_t bytes = layout_.groups[size_t(layout_.state_group())].page_bytes;
    std::vector<std::pair<size_t, size_t>> order;
    for (size_t i = 0; i < saved_.nodes.size(); ++i)
      for (size_t s = 0; s < saved_.nodes[i].states.size(); ++s)
        if (out.nodes[i]) order.emplace_back(i, s);
    std::ranges::stable_sort(order, std::greater(),
                             [&](const auto& at) { return saved_.nodes[at.first].states[at.second].stamp; });
    for (const auto& [i, s] : order) {
      if (bytes > room_ || bytes > state_room_) return;
      out.states[i][s] = 1;
      room_ -= bytes, state_room_ -= bytes;
    }
  }

  // Without full groups a node is there for its pages, its states and its children alone.
  void drop_empty_nodes(Selection& out) {
    std::vector<char> has_children(out.nodes.size());
    for (size_t i = out.nodes.size(); i-- > 0;) {
      const auto& node = saved_.nodes[i];
      const bool pages = std::ranges::any_of(node.pages, [](int32_t page) { return page >= 0; });
      const bool states = std::ranges::any_of(out.states[i], [](char chosen) { return chosen != 0; });
      out.nodes[i] = out.nodes[i] && (pages || states || has_children[i]);
      if (out.nodes[i] && node.parent >= 0) has_children[size_t(node.parent)] = 1;
    }
  }

  const SavedPrefixIndex& saved_;
  const CacheLayout& layout_;
  int64_t room_, state_room_;
};

}  // namespace

SavedPrefixIndex PrefixIndex::save(std::vector<std::vector<int32_t>>& ids) const {
  SavedPrefixIndex out;
  const auto groups = size_t(whole());
  ids.assign(groups, {});
  const auto number_of = [&](size_t group, int32_t page) {
    ids[group].push_back(page);
    return int32_t(ids[group].size() - 1);
  };
  std::vector<std::pair<const Node*, int32_t>> left;  // a node, and the number of its parent or -1 - its root's
  for (const auto& [root, node] : roots_) {
    if (!root.adapter.empty()) continue;  // versions of adapters are those of one process
    out.roots.push_back(root);
    for (const auto& child : node->children) left.emplace_back(child.get(), -int32_t(out.roots.size()));
  }
  while (!left.empty()) {
    const auto [node, parent] = left.back();
    left.pop_back();
    SavedPrefixIndex::Node saved;
    parent >= 0 ? saved.parent = parent : saved.root = -1 - parent;
    saved.tokens = node->tokens;
    for (size_t g = 0; g < groups; ++g) saved.pages.push_back(node->pages[g] >= 0 ? number_of(g, node->pages[g]) : -1);
    for (const KeptState& state : node->states)
      saved.states.push_back({state.rows, number_of(size_t(state_group_), state.slot), state.stamp});
    saved.stamp = *std::ranges::max_element(node->stamps);
    for (const auto& child : node->children) left.emplace_back(child.get(), int32_t(out.nodes.size()));
    out.nodes.push_back(std::move(saved));
  }
  for (const auto& pages : ids) out.pages.push_back(int64_t(pages.size()));
  return out;
}

std::vector<PrefixIndex::Restored> PrefixIndex::restore(const SavedPrefixIndex& saved, std::vector<PageOp>& ops) {
  check(nodes_ == 0 && roots_.empty(), "prefix index: it is not empty");
  const Selection selection = Selector(saved, pools_, state_budget_ - state_bytes_).select();
  const int groups = whole();
  std::vector<Restored> out;
  std::vector<Node*> nodes(saved.nodes.size());
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (!selection.nodes[i]) continue;
    const auto& from = saved.nodes[i];
    auto made = std::make_unique<Node>();
    Node& node = *(nodes[i] = made.get());
    node.parent = from.parent >= 0 ? nodes[size_t(from.parent)] : root(saved.roots[size_t(from.root)]);
    node.tokens = from.tokens;
    node.pages.assign(size_t(groups), -1);
    node.stamps.assign(size_t(groups) + 1, 0);
    node.evictable.assign(size_t(groups) + 1, 0);
    for (int g = 0; g < groups; ++g)
      if (from.pages[size_t(g)] >= 0) {
        const int32_t page = pools_.take(g, ops);
        set_page(node, g, page);
        pools_.give_back(g, page);
        out.push_back({g, from.pages[size_t(g)], page});
      }
    for (size_t s = 0; s < from.states.size(); ++s)
      if (selection.states[i][s]) {
        const int32_t slot = pools_.take(state_group_, ops);
        pools_.index(state_group_, slot);
        pools_.give_back(state_group_, slot);
        state_bytes_ += pools_.layout().groups[size_t(state_group_)].page_bytes;
        node.states.push_back({from.states[s].rows, slot, from.states[s].stamp});
        out.push_back({state_group_, from.states[s].number, slot});
      }
    node.parent->children.insert(std::move(made));
    ++nodes_;
  }
  // Stamps of this index, in the order of those that were saved.
  struct Used {
    uint64_t stamp;
    Node* node;
    KeptState* state;  // null: the node itself
  };
  std::vector<Used> order;
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (!nodes[i]) continue;
    order.push_back({saved.nodes[i].stamp, nodes[i], nullptr});
    for (KeptState& state : nodes[i]->states) order.push_back({state.stamp, nodes[i], &state});
  }
  std::ranges::stable_sort(order, {}, &Used::stamp);
  for (const Used& used : order) {
    if (used.state) {
      used.state->stamp = ++clock_;
      states_.emplace(clock_, Entry{used.node, state_group_, used.state->rows});
      continue;
    }
    for (uint64_t& stamp : used.node->stamps) stamp = ++clock_;
    for (int place = 0; place <= groups; ++place)
      if (place != state_group_) refresh(*used.node, place);
  }
  return out;
}

}  // namespace easydel::esurge
