#include "easydel/generation/score_tree.h"

#include <algorithm>
#include <numeric>
#include <span>

namespace easydel::generation {
namespace {

using text::TokenId;

int64_t length_of(const std::vector<TokenId>& sequence) { return int64_t(sequence.size()); }

// Sequences [first, end) of the sorted ones, which have the tokens [0, depth) of the node `parent` in common.
struct Range {
  size_t first, end;
  int64_t depth, parent;
};

class Builder {
 public:
  Builder(const std::vector<std::vector<TokenId>>& sequences, int64_t min_shared)
      : sequences_(sequences), min_shared_(min_shared), order_(sequences.size()) {
    std::iota(order_.begin(), order_.end(), size_t(0));
    std::ranges::sort(order_, [&](size_t a, size_t b) { return sequences[a] < sequences[b]; });
    common_.resize(order_.size(), 0);
    for (size_t i = 1; i < order_.size(); ++i) {
      const auto &before = sequences[order_[i - 1]], &own = sequences[order_[i]];
      common_[i] = std::ranges::mismatch(before, own).in1 - before.begin();
    }
    tree_.last.resize(sequences.size());
  }

  ScoreTree build() {
    std::vector<Range> open;
    if (!order_.empty()) divide({0, order_.size(), 0, -1}, 0, open);
    while (!open.empty()) {
      const Range range = open.back();
      open.pop_back();
      add(range, open);
    }
    for (size_t i = tree_.nodes.size(); i-- > 0;) {
      const ScoreNode& node = tree_.nodes[i];
      if (node.parent < 0) continue;
      ScoreNode& parent = tree_.nodes[size_t(node.parent)];
      parent.longest = std::max(parent.longest, node.longest);
      parent.height = std::max(parent.height, node.height + 1);
      parent.children.push_back(i);
    }
    std::ranges::stable_sort(tree_.roots, {}, [this](size_t root) { return tree_.nodes[root].longest; });
    return std::move(tree_);
  }

 private:
  // Splits a range whose sequences have `common` tokens in common into those that go on alike.
  void divide(const Range& range, int64_t common, std::vector<Range>& open) const {
    for (size_t first = range.first; first < range.end;) {
      size_t end = first + 1;
      while (end < range.end && common_[end] > common) ++end;
      open.push_back({first, end, range.depth, range.parent});
      first = end;
    }
  }

  void add(const Range& range, std::vector<Range>& open) {
    const std::vector<TokenId>& first = sequences_[order_[range.first]];
    int64_t common = length_of(first);
    for (size_t i = range.first + 1; i < range.end; ++i) common = std::min(common, common_[i]);
    const bool all_equal = length_of(sequences_[order_[range.end - 1]]) == common;
    if (!all_equal && common - range.depth < min_shared_) {
      // Sequences that end here become nodes of their own; the others go on without a node for what they share.
      size_t ended = range.first;
      while (ended < range.end && length_of(sequences_[order_[ended]]) == common) ++ended;
      if (ended > range.first) add({range.first, ended, range.depth, range.parent}, open);
      return divide({ended, range.end, range.depth, range.parent}, common, open);
    }
    const auto node = int64_t(tree_.nodes.size());
    tree_.nodes.push_back({.parent = range.parent,
                           .sequence = order_[range.first],
                           .begin = range.depth,
                           .end = common,
                           .longest = common});
    if (range.parent < 0) tree_.roots.push_back(size_t(node));
    size_t rest = range.first;
    while (rest < range.end && length_of(sequences_[order_[rest]]) == common) tree_.last[order_[rest++]] = size_t(node);
    divide({rest, range.end, common, node}, common, open);
  }

  const std::vector<std::vector<TokenId>>& sequences_;
  int64_t min_shared_;
  std::vector<size_t> order_;    // of the sequences, sorted
  std::vector<int64_t> common_;  // tokens that sequence i of that order has in common with the one before
  ScoreTree tree_;
};

}  // namespace

int64_t ScoreTree::tokens() const {
  int64_t sum = 0;
  for (const ScoreNode& node : nodes) sum += node.end - node.begin;
  return sum;
}

ScoreTree make_score_tree(const std::vector<std::vector<TokenId>>& sequences, int64_t min_shared) {
  return Builder(sequences, min_shared).build();
}

}  // namespace easydel::generation
