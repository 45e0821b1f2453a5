// Byte pair merging: repeatedly merges the pair of neighbours with the lowest rank, the leftmost first.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "easydel/text/tokenizers/vocabulary.h"

namespace easydel::text {

inline constexpr uint32_t no_rank = UINT32_MAX;

struct Symbol {
  TokenId id;
  uint32_t length;          // in bytes; 0: merged into the previous symbol
  uint32_t rank = no_rank;  // of the merge with the next symbol
  TokenId whole = -1;       // result of that merge
};

namespace merging {

// look(left, right, begin) -> {rank, whole}; rank is no_rank if the two do not merge; `begin`: offset of `left` in the
// text. For short texts: scans for the next merge, without allocating.
template <class Look>
void merge_short(std::vector<Symbol>& symbols, Look&& look) {
  size_t n = symbols.size();
  auto set = [&](size_t i, uint32_t begin) {
    auto [rank, whole] = look(symbols[i], symbols[i + 1], begin);
    symbols[i].rank = rank;
    symbols[i].whole = whole;
  };
  uint32_t begin = 0;
  for (size_t i = 0; i + 1 < n; begin += symbols[i++].length) set(i, begin);
  while (n > 1) {
    size_t best = 0;
    for (size_t i = 1; i + 1 < n; ++i)
      if (symbols[i].rank < symbols[best].rank) best = i;
    if (symbols[best].rank == no_rank) break;
    symbols[best].id = symbols[best].whole;
    symbols[best].length += symbols[best + 1].length;
    std::copy(symbols.begin() + static_cast<std::ptrdiff_t>(best) + 2, symbols.begin() + static_cast<std::ptrdiff_t>(n),
              symbols.begin() + static_cast<std::ptrdiff_t>(best) + 1);
    --n;
    begin = 0;
    for (size_t i = 0; i + 1 < best; ++i) begin += symbols[i].length;
    if (best > 0) {
      set(best - 1, begin);
      begin += symbols[best - 1].length;
    }
    if (best + 1 < n)
      set(best, begin);
    else
      symbols[best].rank = no_rank;
  }
  symbols.resize(n);
}

// The same with a heap; stale candidates are recognized by the result that they would have had.
template <class Look>
void merge_long(std::vector<Symbol>& symbols, Look&& look) {
  struct Link {
    int32_t previous, next;
    uint32_t begin;
  };
  struct Candidate {
    uint32_t rank;
    int32_t at;
    TokenId whole;
    uint32_t length;
    bool operator<(const Candidate& other) const {  // std's heaps put the largest first
      return rank != other.rank ? rank > other.rank : at > other.at;
    }
  };
  auto n = int32_t(symbols.size());
  std::vector<Link> links(symbols.size());
  std::vector<Candidate> heap;
  heap.reserve(symbols.size());
  uint32_t begin = 0;
  for (int32_t i = 0; i < n; begin += symbols[size_t(i++)].length) links[i] = {i - 1, i + 1 < n ? i + 1 : -1, begin};
  auto candidate = [&](int32_t at) {
    int32_t next = links[at].next;
    auto [rank, whole] = look(symbols[at], symbols[next], links[at].begin);
    if (rank == no_rank) return false;
    heap.push_back({rank, at, whole, symbols[at].length + symbols[next].length});
    return true;
  };
  for (int32_t i = 0; i + 1 < n; ++i) candidate(i);
  std::make_heap(heap.begin(), heap.end());
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end());
    Candidate top = heap.back();
    heap.pop_back();
    int32_t at = top.at, next = links[at].next;
    if (symbols[at].length == 0 || next < 0) continue;
    if (symbols[at].length + symbols[next].length != top.length) {
      // The pair may have changed; its current result decides, as in tokenizers' models/bpe/word.rs.
      auto [rank, whole] = look(symbols[at], symbols[next], links[at].begin);
      if (rank == no_rank || whole != top.whole) continue;
    }
    symbols[at].id = top.whole;
    symbols[at].length += symbols[next].length;
    symbols[next].length = 0;
    links[at].next = links[next].next;
    if (links[at].next >= 0) links[links[at].next].previous = at;
    if (links[at].previous >= 0 && candidate(links[at].previous)) std::push_heap(heap.begin(), heap.end());
    if (links[at].next >= 0 && candidate(at)) std::push_heap(heap.begin(), heap.end());
  }
  std::erase_if(symbols, [](const Symbol& symbol) { return symbol.length == 0; });
}

template <class Look>
void merge(std::vector<Symbol>& symbols, Look&& look) {
  if (symbols.size() <= 48)
    merge_short(symbols, look);
  else
    merge_long(symbols, look);
}

}  // namespace merging
}  // namespace easydel::text
