// Builds the double array: places the nodes of sorted keys where all their children fit.
#include "easydel/text/tokenizers/prefix_trie.h"

#include <algorithm>
#include <cstring>

namespace easydel::text {

class PrefixTrie::Builder {
 public:
  Builder(std::vector<Unit>& units, std::vector<std::pair<std::string_view, int32_t>> keys,
          std::vector<int32_t>* shorter)
      : units_(units), keys_(std::move(keys)), shorter_(shorter) {}

  void build() {
    units_.resize(1);
    units_[0].parent = 0;
    // A list instead of recursion, because keys may be long.
    std::vector<Task> tasks = {{0, 0, keys_.size(), 0, -1}};
    while (!tasks.empty()) {
      Task task = tasks.back();
      tasks.pop_back();
      place(task, tasks);
    }
  }

 private:
  struct Task {
    int32_t node;
    size_t begin, end;  // keys with the node's prefix
    size_t depth;
    int32_t above;  // the value of the longest key above the node; -1: none
  };
  struct Child {
    uint8_t label;
    size_t begin, end;
  };

  void place(const Task& task, std::vector<Task>& tasks) {
    children_.clear();
    size_t i = task.begin;
    while (i < task.end && keys_[i].first.size() == task.depth) {
      if (task.depth > 0) units_[task.node].value = keys_[i].second;
      if (shorter_) (*shorter_)[size_t(keys_[i].second)] = task.above;
      ++i;
    }
    const int32_t own = units_[task.node].value, above = own >= 0 ? own : task.above;
    while (i < task.end) {
      auto label = uint8_t(keys_[i].first[task.depth]);
      size_t begin = i;
      while (i < task.end && uint8_t(keys_[i].first[task.depth]) == label) ++i;
      children_.push_back({label, begin, i});
    }
    if (children_.empty()) return;
    int32_t base = find_base();
    units_[task.node].base = base;
    for (const Child& child : children_) {
      int32_t at = base + child.label;
      units_[at].parent = task.node;
      tasks.push_back({at, child.begin, child.end, task.depth + 1, above});
    }
  }

  int32_t find_base() {
    int32_t first = children_.front().label, last = children_.back().label;
    // Crowded regions are never searched again: this wastes a little space and keeps building linear.
    int32_t at = std::max(next_free_, first + 1);
    size_t taken = 0;
    bool noted = false;
    for (;; ++at) {
      int32_t base = at - first;
      if (size_t(base + last) >= units_.size()) units_.resize(size_t(base + last) + 257);
      if (units_[at].parent >= 0) {
        ++taken;
        continue;
      }
      if (!noted) {
        next_free_ = at;
        noted = true;
      }
      bool fits = std::all_of(children_.begin(), children_.end(),
                              [&](const Child& child) { return units_[base + child.label].parent < 0; });
      if (!fits) continue;
      auto tried = size_t(at - next_free_) + 1;
      if (tried > 64 && taken * 20 > tried * 19) next_free_ = at;
      return base;
    }
  }

  std::vector<Unit>& units_;
  std::vector<std::pair<std::string_view, int32_t>> keys_;
  std::vector<int32_t>* shorter_;
  std::vector<Child> children_;
  int32_t next_free_ = 1;
};

namespace {

// Compares by bytes; the first eight, which decide most pairs, are compared as one integer.
std::vector<std::pair<std::string_view, int32_t>> sorted(
    const std::vector<std::pair<std::string_view, int32_t>>& keys) {
  struct Order {
    uint64_t first;
    uint32_t index;
  };
  std::vector<Order> order(keys.size());
  for (uint32_t i = 0; i < keys.size(); ++i) {
    uint64_t first = 0;
    std::memcpy(&first, keys[i].first.data(), std::min<size_t>(8, keys[i].first.size()));
    order[i] = {__builtin_bswap64(first), i};
  }
  std::sort(order.begin(), order.end(), [&](const Order& a, const Order& b) {
    if (a.first != b.first) return a.first < b.first;
    int less = keys[a.index].first.compare(keys[b.index].first);
    return less != 0 ? less < 0 : a.index < b.index;
  });
  std::vector<std::pair<std::string_view, int32_t>> out;
  out.reserve(keys.size());
  for (const Order& item : order) out.push_back(keys[item.index]);
  return out;
}

}  // namespace

PrefixTrie::PrefixTrie(const std::vector<std::pair<std::string_view, int32_t>>& keys, std::vector<int32_t>* shorter) {
  Builder(units_, sorted(keys), shorter).build();
}

}  // namespace easydel::text
