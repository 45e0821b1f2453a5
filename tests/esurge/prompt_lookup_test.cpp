// Proposals from the sequence itself, compared with a search through all of it, and how many are made.
#include "easydel/esurge/prompt_lookup.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace easydel::test {
namespace {

using esurge::DraftCount;
using esurge::PromptLookup;
using text::TokenId;
using Tokens = std::vector<TokenId>;

// The same by comparing the end of the sequence with every place before it.
Tokens searched(const Tokens& tokens, int64_t min_ngram, int64_t max_ngram, int64_t count) {
  const auto size = int64_t(tokens.size());
  for (int64_t n = std::min(max_ngram, size); n >= min_ngram; --n)
    for (int64_t end = size - 1; end >= n; --end) {
      if (!std::equal(tokens.end() - n, tokens.end(), tokens.begin() + end - n)) continue;
      Tokens longer = tokens;
      for (int64_t i = 0; i < count; ++i) longer.push_back(longer[size_t(end + i)]);
      return {longer.end() - count, longer.end()};
    }
  return {};
}

Tokens proposed(const Tokens& tokens, int64_t min_ngram, int64_t max_ngram, int64_t count) {
  PromptLookup lookup(min_ngram, max_ngram);
  lookup.add(tokens);
  return lookup.propose(count);
}

TEST(PromptLookup, ProposesWhatFollowedTheSameTokens) {
  EXPECT_EQ(proposed({1, 2, 3, 4, 5, 1, 2, 3}, 2, 3, 2), (Tokens{4, 5}));
  EXPECT_EQ(proposed({1, 2, 3, 4, 5, 9, 2, 3}, 2, 3, 3), (Tokens{4, 5, 9})) << "two tokens are the same";
  EXPECT_EQ(proposed({1, 2, 3, 4, 5, 9, 9, 3}, 2, 3, 3), Tokens{}) << "one is not enough";
  EXPECT_EQ(proposed({7, 1, 2, 8, 5, 1, 2, 9, 7, 1, 2}, 2, 3, 1), Tokens{8}) << "the longest match is first";
  EXPECT_EQ(proposed({1, 2, 8, 5, 1, 2, 9, 7, 1, 2}, 2, 3, 1), Tokens{9}) << "then the last one";
  EXPECT_EQ(proposed({}, 1, 3, 4), Tokens{});
  EXPECT_EQ(proposed({5}, 1, 3, 4), Tokens{});
  EXPECT_EQ(proposed({-1, 2147483647, -1}, 1, 1, 2), (Tokens{2147483647, -1}));
}

TEST(PromptLookup, RepeatsWhatOverlapsTheEnd) {
  EXPECT_EQ(proposed({4, 4}, 1, 3, 5), (Tokens{4, 4, 4, 4, 4}));
  EXPECT_EQ(proposed({1, 2, 3, 1, 2, 3, 1}, 2, 3, 7), (Tokens{2, 3, 1, 2, 3, 1, 2}));
}

TEST(PromptLookup, FindsWhatASearchThroughTheSequenceFinds) {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    const int alphabet = 2 + int(random() % 8);
    const auto min_ngram = 1 + int64_t(random() % 3), max_ngram = min_ngram + int64_t(random() % 4);
    Tokens tokens;
    PromptLookup lookup(min_ngram, max_ngram);
    for (int i = 0; i < 120; ++i) {
      // Pieces of what was there before come back, as in text.
      const size_t piece = 1 + random() % 9;
      const size_t from = tokens.size() > piece ? random() % (tokens.size() - piece) : 0;
      const bool copy = tokens.size() > piece && random() % 3 == 0;
      Tokens added;
      for (size_t j = 0; j < piece; ++j)
        added.push_back(copy ? tokens[from + j] : TokenId(random() % size_t(alphabet)) * 1000003);
      lookup.add(added);
      tokens.insert(tokens.end(), added.begin(), added.end());
      const auto count = int64_t(1 + random() % 10);
      ASSERT_EQ(lookup.propose(count), searched(tokens, min_ngram, max_ngram, count))
          << "round " << round << ", " << tokens.size() << " tokens";
    }
  }
}

TEST(PromptLookup, CopiesAreIndependent) {
  PromptLookup lookup(1, 2);
  lookup.add(Tokens{1, 2, 3, 1});
  PromptLookup other = lookup;
  other.add(Tokens{3});
  EXPECT_EQ(lookup.propose(1), Tokens{2});
  EXPECT_EQ(other.propose(1), Tokens{1});
}

TEST(DraftCount, GrowsWithWhatIsAccepted) {
  DraftCount drafts(8);
  const int64_t first = drafts.next(1);
  EXPECT_GT(first, 1);
  for (int i = 0; i < 10; ++i) drafts.record(4, 4);
  EXPECT_EQ(drafts.next(1), 8) << "never more than asked for";
  DraftCount one(1);
  EXPECT_EQ(one.next(1), 1);
  EXPECT_EQ(DraftCount(0).next(1), 0);
}

TEST(DraftCount, IsLowerInAStepOfManyRows) {
  DraftCount drafts(8);
  for (int i = 0; i < 4; ++i) drafts.record(2, 2), drafts.record(2, 1);
  EXPECT_GT(drafts.acceptance(), 0.5);
  EXPECT_LT(drafts.acceptance(), 0.9);
  EXPECT_GE(drafts.next(1), 4);
  EXPECT_LE(drafts.next(8), 4);
  EXPECT_EQ(drafts.next(256), 0) << "the step's time goes into rows";
}

TEST(DraftCount, StopsAndTriesAgainLessAndLessOften) {
  DraftCount drafts(4);
  int64_t tried = 0;
  for (; drafts.next(1) > 0; ++tried) drafts.record(1, 0);
  EXPECT_LT(tried, 40) << "drafts that are never right end soon";
  std::vector<int64_t> waits;
  for (int64_t waited = 0; waits.size() < 7;) {
    if (drafts.next(1) == 0) {
      drafts.record(0, 0), ++waited;
      continue;
    }
    EXPECT_EQ(drafts.next(1), 1);
    drafts.record(1, 0);
    waits.push_back(waited), waited = 0;
  }
  EXPECT_EQ(waits, (std::vector<int64_t>{8, 16, 32, 64, 128, 256, 256}));
  while (drafts.next(1) == 0) drafts.record(0, 0);
  for (int i = 0; i < 3; ++i) drafts.record(1, 1);
  EXPECT_GE(drafts.next(1), 1) << "drafts that are right bring them back";
}

}  // namespace
}  // namespace easydel::test
