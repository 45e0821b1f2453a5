#include "easydel/generation/processors.h"

#include <cmath>

#include <gtest/gtest.h>

#include "easydel/base/document.h"

namespace easydel::generation {
namespace {

TEST(Processors, PresenceAndFrequencyCountWhatWasGeneratedAndNotThePrompt) {
  GenerationConfig config{.presence_penalty = 0.5, .frequency_penalty = 0.25};
  const std::vector<TokenId> tokens = {0, 0, 1, 1, 2};
  std::vector<float> scores(4, 1.0f);
  apply(make_chain(config), {tokens, 2}, scores);
  EXPECT_EQ(scores, (std::vector<float>{1.0f, 0.0f, 0.25f, 1.0f}));
}

TEST(Processors, PassOverIdsBeyondTheVocabulary) {
  GenerationConfig config{.repetition_penalty = 2, .no_repeat_ngram_size = 1};
  config.suppress_tokens = {99, -1};
  const std::vector<TokenId> tokens = {1, 77};
  std::vector<float> scores(3, 1.0f);
  apply(make_chain(config), {tokens, 0}, scores);
  EXPECT_EQ(scores, (std::vector<float>{1.0f, -INFINITY, 1.0f}));
}

}  // namespace
}  // namespace easydel::generation
