#include "easydel/text/tokenizers/prefix_trie.h"

#include <gtest/gtest.h>

namespace easydel::text {
namespace {

TEST(PrefixTrie, SaysOfEachKeyTheLongestOtherThatItBeginsWith) {
  std::vector<int32_t> shorter(7, -2);
  const PrefixTrie trie({{"abc", 0}, {"a", 1}, {"ab", 2}, {"b", 3}, {"abcde", 4}, {"ab", 5}, {"bcd", 6}}, &shorter);
  // Of equal keys the last one counts, and neither begins with the other.
  EXPECT_EQ(shorter, (std::vector<int32_t>{5, -1, 1, -1, 0, 1, 3}));
  size_t length = 0;
  EXPECT_EQ(trie.longest("xabcd", 1, length), 0);
  EXPECT_EQ(length, 3u);
}

}  // namespace
}  // namespace easydel::text
