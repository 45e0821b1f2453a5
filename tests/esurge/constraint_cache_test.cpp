// Constraints are compiled once for each content, and the least recently used ones go.
#include "easydel/esurge/constraint_cache.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "support/data.h"

namespace easydel::test {
namespace {

using esurge::ConstraintCache;
using text::constrain::Language;
using Kind = Language::Kind;

const std::vector<text::TokenId> ends = {2};

ConstraintCache cache_of(size_t max_bytes) {
  static const auto tokenizer = text::Tokenizer::load(test_data("models/stories260K-hf"));
  return {tokenizer, 512, max_bytes};
}

TEST(ConstraintCache, CompilesAContentOnce) {
  ConstraintCache cache = cache_of(64 << 20);
  const auto first = cache.get({Kind::regex, "[a-z]+"}, ends);
  EXPECT_EQ(cache.get({Kind::regex, "[a-z]+"}, ends), first);
  EXPECT_NE(cache.get({Kind::regex, "[a-y]+"}, ends), first);
  EXPECT_NE(cache.get({Kind::choice, "", {"ab", "c"}}, ends), cache.get({Kind::choice, "", {"a", "bc"}}, ends));
  EXPECT_EQ(cache.size(), 4u);
  EXPECT_EQ(&first->tokens(), &cache.get({Kind::json_object}, ends)->tokens()) << "one vocabulary for all";
  EXPECT_EQ(first->tokens().size(), 512);
  const auto other = cache.get({Kind::regex, "[a-z]+"}, {2, 3});
  EXPECT_NE(other, first) << "it ends with other tokens";
  EXPECT_EQ(other->tokens().ends(), (std::vector<text::TokenId>{2, 3}));
  EXPECT_EQ(&cache.get({Kind::regex, "x"}, ends)->tokens(), &first->tokens());
}

TEST(ConstraintCache, ForgetsWhatWasUsedLeastRecently) {
  ConstraintCache one = cache_of(64 << 20);
  one.get({Kind::regex, "a{1}"}, ends);
  ConstraintCache cache = cache_of(3 * one.bytes() + one.bytes() / 2);
  const auto a = cache.get({Kind::regex, "a{1}"}, ends);
  const auto b = cache.get({Kind::regex, "b{1}"}, ends);
  cache.get({Kind::regex, "c{1}"}, ends);
  EXPECT_EQ(cache.get({Kind::regex, "a{1}"}, ends), a);
  cache.get({Kind::regex, "d{1}"}, ends);
  EXPECT_EQ(cache.size(), 3u);
  EXPECT_EQ(cache.get({Kind::regex, "a{1}"}, ends), a) << "it was used after b";
  EXPECT_NE(cache.get({Kind::regex, "b{1}"}, ends), b) << "compiled again; who has the first one keeps it";
  EXPECT_LE(cache.bytes(), 3 * one.bytes() + one.bytes() / 2);
}

TEST(ConstraintCache, LearnsAheadOfTheFirstText) {
  ConstraintCache cache = cache_of(64 << 20);
  const auto constraint = cache.get({Kind::json_object}, ends);
  for (int i = 0; i < 3000 && constraint->known_states() == 0; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_GT(constraint->known_states(), 0u);
}

TEST(ConstraintCache, KeepsNothingOfWhatCannotBeCompiled) {
  ConstraintCache cache = cache_of(64 << 20);
  EXPECT_NE(refusal([&] { cache.get({Kind::regex, "(a"}, ends); }), "(nothing was refused)");
  EXPECT_NE(refusal([&] {
              cache.get({Kind::json_schema, R"({"not": {"type": "string"}})"}, ends);
            }),
            "(nothing was refused)");
  EXPECT_EQ(cache.size(), 0u);
}

}  // namespace
}  // namespace easydel::test
