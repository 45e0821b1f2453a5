// Scores of tokens that the prefix index keeps with their pages.
#include <algorithm>
#include <utility>

#include "easydel/base/error.h"
#include "easydel/esurge/prefix_index.h"

namespace easydel::esurge {

void PrefixIndex::find_scores(const CacheRoot& root, const TokenKeys& keys, PromptScores& scores) const {
  const auto found = roots_.find(root);
  if (found == roots_.end()) return;
  constexpr int most_siblings = 16;  // that are looked at in each direction
  const Node* at = found->second.get();
  const auto size = int64_t(keys.prompt.size()), page_size = pools_.layout().page_size;
  std::vector<uint32_t> tokens;
  for (int64_t begin = 0; begin < size; begin += page_size) {
    tokens.clear();
    for (int64_t i = begin; i < std::min(begin + page_size, size); ++i) tokens.push_back(keys[i]);
    const Node* best = nullptr;
    int64_t rows = 0;
    // The other way round than match(): of siblings with a common beginning any may have its scores. Returns whether
    // those after it may have more.
    const auto look = [&](const Node& child) {
      const auto end = std::mismatch(tokens.begin(), tokens.end(), child.tokens.begin(), child.tokens.end()).first;
      const int64_t common = end - tokens.begin();
      int64_t known = 0;
      while (known < common && (begin + known <= std::ssize(scores.rows) || child.scores.count(known) >= scores.count))
        ++known;
      if (known > rows) best = &child, rows = known;
      return common > rows;
    };
    const auto next = at->children.lower_bound(std::span<const uint32_t>(tokens));
    auto after = next;
    for (int i = 0; i < most_siblings && after != at->children.end() && look(**after); ++i) ++after;
    auto before = next;
    for (int i = 0; i < most_siblings && before != at->children.begin() && look(**std::prev(before)); ++i) --before;
    for (int64_t i = 0; i < rows; ++i)
      if (begin + i > std::ssize(scores.rows))
        scores.rows.push_back(best->scores.get(i, keys.prompt[size_t(begin + i)], scores.count));
    if (rows < page_size) return;
    at = best;
  }
}

void PrefixIndex::make_score_room(int64_t begin, int64_t count, const PromptScores& scores) {
  if (begin + count > 1 && begin < std::ssize(scores.rows) + 1)
    while (!pools_.fits_bytes(PageScores::most_bytes(count, scores.count)) && evict_one()) {
    }
}

void PrefixIndex::keep_scores(Node& node, int64_t begin, int64_t count, const PromptScores& scores) {
  const int64_t first = std::max<int64_t>(begin, 1), end = std::min(begin + count, std::ssize(scores.rows) + 1);
  if (first >= end) return;
  const auto rows = std::span(scores.rows).subspan(size_t(first - 1), size_t(end - first));
  std::optional<PageScores> all = node.scores.with(first - begin, rows, scores.count);
  if (!all || !pools_.fits_bytes(all->bytes() - node.scores.bytes())) return;
  drop_scores(node);
  pools_.keep_bytes(all->bytes());
  node.scores = std::move(*all);
  node.scores_stamp = ++clock_;
  scored_.emplace(clock_, &node);
}

void PrefixIndex::drop_scores(Node& node) {
  if (node.scores.empty()) return;
  pools_.give_up_bytes(node.scores.bytes());
  scored_.erase(std::exchange(node.scores_stamp, 0));
  node.scores = {};
}

int64_t PrefixIndex::score_bytes() const {
  int64_t sum = 0;
  for (const auto& [stamp, node] : scored_) {
    check(!node->scores.empty() && node->scores_stamp == stamp, "prefix index: a node without scores is listed");
    sum += node->scores.bytes();
  }
  return sum;
}

}  // namespace easydel::esurge
