#include "easydel/data/saved_columns.h"

#include <gtest/gtest.h>

#include "support/data.h"

namespace easydel::data {
namespace {

using Ids = std::vector<int32_t>;

// A prompt with two answers, of which the answers' tokens are learned.
Example pair(const Ids& prompt, const Ids& chosen, const Ids& other_prompt, const Ids& rejected) {
  Example out;
  for (const auto& [before, answer] : {std::pair{prompt, chosen}, std::pair{other_prompt, rejected}}) {
    Ids ids = before;
    ids.insert(ids.end(), answer.begin(), answer.end());
    std::vector<uint8_t> learn(ids.size(), 1);
    std::fill_n(learn.begin(), before.size(), uint8_t{0});
    out.add_sequence(ids, learn);
  }
  return out;
}

TEST(SavedColumns, OfASequenceAreItsTokensAMaskOfOnesAndItsLengths) {
  Example example;
  example.add_sequence(Ids{4, 5, 6});
  example.add_sequence(Ids{7, 8});
  const SavedRow row{example, 1, "mixture.save"};
  EXPECT_EQ(saved_tokens(row), (Ids{4, 5, 6, 7, 8}));
  EXPECT_EQ(saved_attention_mask(row), (Ids{1, 1, 1, 1, 1}));
  EXPECT_EQ(saved_lengths(row), (Ids{3, 2}));
}

TEST(SavedColumns, OfAPairAreItsPromptAndItsAnswers) {
  const Example example = pair({1, 2}, {3, 4, 5}, {1, 2}, {6});
  const SavedRow row{example, 1, "mixture.save"};
  EXPECT_EQ(saved_prompt(row), (Ids{1, 2}));
  EXPECT_EQ(saved_chosen(row), (Ids{3, 4, 5}));
  EXPECT_EQ(saved_rejected(row), (Ids{6}));
}

TEST(SavedColumns, TwoPromptsOfOnePairAreRefusedWithTheRow) {
  const Example example = pair({1, 2}, {3}, {2}, {6});
  const std::string where = "mixture.save";
  EXPECT_EQ(test::refusal([&] {
              saved_prompt({example, 7, where});
            }),
            "mixture.save: max_length cut the two prompts of pair 7 differently, and a row has one\n"
            "    cut the ends (truncation_mode: keep_start), or set max_prompt_length");
}

}  // namespace
}  // namespace easydel::data
