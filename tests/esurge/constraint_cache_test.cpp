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
  EXPECT_TRUE(first->tokens().shares_tokens_with(cache.get({Kind::json_object}, ends)->tokens()));
  EXPECT_EQ(first->tokens().size(), 512);
  const auto other = cache.get({Kind::regex, "[a-z]+"}, {2, 3});
  EXPECT_NE(other, first) << "it ends with other tokens";
  EXPECT_EQ(other->tokens().ends(), (std::vector<text::TokenId>{2, 3}));
  EXPECT_TRUE(other->tokens().shares_tokens_with(first->tokens())) << "requests choose ends, and a vocabulary is large";
}

// All that learning ahead finds, so that the cache's own thread adds nothing to it.
std::shared_ptr<const text::constrain::Constraint> learned(ConstraintCache& cache, const std::string& regex) {
  const auto constraint = cache.get({Kind::regex, regex}, ends);
  text::constrain::Matcher(constraint, text::TextPlace::inside).learn_ahead(false, 60);
  return constraint;
}

TEST(ConstraintCache, ForgetsWhatWasUsedLeastRecently) {
  ConstraintCache one = cache_of(64 << 20);
  learned(one, "a{1}");
  ConstraintCache cache = cache_of(3 * one.bytes() + one.bytes() / 2);
  const auto a = learned(cache, "a{1}");
  const auto b = learned(cache, "b{1}");
  learned(cache, "c{1}");
  EXPECT_EQ(cache.get({Kind::regex, "a{1}"}, ends), a);
  learned(cache, "d{1}");
  EXPECT_EQ(cache.size(), 3u);
  EXPECT_EQ(cache.get({Kind::regex, "a{1}"}, ends), a) << "it was used after b";
  EXPECT_NE(cache.get({Kind::regex, "b{1}"}, ends), b) << "compiled again; who has the first one keeps it";
  EXPECT_LE(cache.bytes(), 3 * one.bytes() + one.bytes() / 2);
}

TEST(ConstraintCache, CountsWhatConstraintsHaveLearned) {
  // Each letter has to come from another set, so each state is looked at by itself.
  const auto pattern = [](char last) {
    std::string out;
    for (char letter = 'b'; letter < 'y'; ++letter) out += std::string("[a-") + letter + "]";
    return out + last;
  };
  ConstraintCache plain = cache_of(64 << 20);
  const size_t automaton = plain.get({Kind::regex, pattern('0')}, ends)->automaton().memory_bytes();
  const size_t whole = learned(plain, pattern('0'))->memory_bytes();
  EXPECT_GT(whole, automaton + 4000);
  EXPECT_GT(plain.bytes(), whole);
  // Two automata fit, and what was learned about one of them.
  ConstraintCache cache = cache_of(automaton + whole + 2000);
  const auto first = learned(cache, pattern('1'));
  learned(cache, pattern('2'));
  EXPECT_EQ(cache.size(), 2u) << "the second one had learned nothing when it came";
  learned(cache, pattern('2'));
  EXPECT_EQ(cache.size(), 1u);
  EXPECT_NE(cache.get({Kind::regex, pattern('1')}, ends), first);
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
