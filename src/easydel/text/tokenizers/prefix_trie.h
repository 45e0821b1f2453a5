// A set of byte strings that finds those that are prefixes of a text: a double-array trie, one step per byte.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace easydel::text {

class PrefixTrie {
 public:
  PrefixTrie() = default;
  // Values must not be negative. The last of equal keys wins; an empty key is never found. `shorter`, if given, is
  // indexed by value and receives for each key the value of its longest proper prefix that is a key; -1: none.
  explicit PrefixTrie(const std::vector<std::pair<std::string_view, int32_t>>& keys,
                      std::vector<int32_t>* shorter = nullptr);

  bool empty() const { return units_.size() <= 1; }

  // Calls found(length, value) for every key that text[at, ...) begins with, the shortest first.
  template <class Found>
  void each_prefix(std::string_view text, size_t at, Found&& found) const {
    if (units_.empty()) return;
    int32_t node = 0;
    for (size_t i = at; i < text.size(); ++i) {
      int32_t next = units_[node].base + uint8_t(text[i]);
      if (next >= int32_t(units_.size()) || units_[next].parent != node) return;
      node = next;
      if (units_[node].value >= 0) found(i + 1 - at, units_[node].value);
    }
  }

  // The value of the longest key that text[at, ...) begins with and its length; -1: none.
  int32_t longest(std::string_view text, size_t at, size_t& length) const {
    int32_t best = -1;
    each_prefix(text, at, [&](size_t found, int32_t value) {
      best = value;
      length = found;
    });
    return best;
  }

 private:
  struct Unit {
    int32_t base = 0;     // children are at base + byte
    int32_t parent = -1;  // -1: free
    int32_t value = -1;
  };
  class Builder;
  std::vector<Unit> units_;
};

}  // namespace easydel::text
