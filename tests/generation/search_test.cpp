// A search without a model: its requests to the model, and its use of the scores.
#include "easydel/generation/search.h"

#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include "easydel/generation/sampler.h"

namespace easydel::generation {
namespace {

// A setting without text and without a model.
struct Setting {
  Surroundings around{nullptr, 4, {}, std::chrono::steady_clock::now()};
  nn::Cache cache{nn::CacheShape{}, 1, 1};

  void score(Search& search, const std::vector<float>& scores) {
    for (Sequence& sequence : search.sequences())
      if (sequence.waiting()) sequence.seen = sequence.tokens.size(), sequence.scores = at::tensor(scores);
  }
};

TEST(Search, ReadsThePromptThenOneTokenAfterTheOther) {
  Setting s;
  const Request request{{3, 1}, {.max_new_tokens = 5, .eos_token_id = {0}}};
  const auto search = make_single_search(request, 7, 0, 10, s.around);
  ASSERT_EQ(search->sequences().size(), 1u);
  const Sequence& sequence = search->sequences()[0];
  EXPECT_EQ(sequence.prompt, 2u);
  EXPECT_FALSE(search->ready());
  EXPECT_FALSE(sequence.decoding());
  s.score(*search, {0, 1, 5, 2});
  ASSERT_TRUE(search->ready());
  search->advance(s.cache);
  EXPECT_EQ(sequence.tokens, (std::vector<TokenId>{3, 1, 2}));
  EXPECT_EQ(sequence.prompt, 2u);
  EXPECT_TRUE(sequence.decoding() && sequence.waiting());
  s.score(*search, {9, 1, 5, 2});
  search->advance(s.cache);
  ASSERT_TRUE(search->done());
  const std::vector<Result> results = search->take_results();
  ASSERT_EQ(results.size(), 1u);
  EXPECT_EQ(results[0].tokens, (std::vector<TokenId>{2}));
  EXPECT_EQ(results[0].end, 0);
  EXPECT_EQ(results[0].prompt_tokens, 2);
  EXPECT_EQ(search->first(), 7u);
}

TEST(Search, DrawsByItsIndexWithinTheRequestAlone) {
  Setting s;
  const Request request{{3}, {.max_new_tokens = 1, .do_sample = true, .seed = 11, .top_k = 0}};
  const std::vector<float> scores = {1, 1.5, 0.5, 1};
  for (size_t choice = 0; choice < 20; ++choice)
    for (const size_t first : {choice, choice + 30}) {
      const auto search = make_single_search(request, first, choice, 2, s.around);
      s.score(*search, scores);
      search->advance(s.cache);
      EXPECT_EQ(search->take_results()[0].tokens[0], pick(scores, draw(11, choice, 1))) << choice << " " << first;
    }
}

TEST(Search, ReadsTheNegativePromptNextToThePrompt) {
  Setting s;
  Request request{{3, 1, 2}, {.max_new_tokens = 2}, {2, 2}};
  request.config.guidance_scale = 2.0;
  const auto search = make_single_search(request, 0, 0, 5, s.around);
  ASSERT_EQ(search->sequences().size(), 2u);
  EXPECT_EQ(search->sequences()[0].prompt, 3u);
  EXPECT_EQ(search->sequences()[1].prompt, 2u);
  s.score(*search, {0, 1, 5, 2});
  search->advance(s.cache);
  EXPECT_EQ(search->sequences()[0].tokens.back(), search->sequences()[1].tokens.back());
}

TEST(Search, GivesABeamThePromptOfTheBeamThatItContinues) {
  Setting s;
  nn::Cache cache(nn::CacheShape{}, 3, 1);
  const Request request{{3, 1}, {.max_new_tokens = 4, .num_beams = 3}};
  const auto search = make_beam_search(request, 0, 6, s.around);
  for (size_t i = 0; i < 3; ++i) search->sequences()[i].slot = int64_t(i);
  s.score(*search, {0, 1, 5, 2});
  search->advance(cache);
  for (const Sequence& sequence : search->sequences()) {
    EXPECT_EQ(sequence.tokens.size(), 3u);
    EXPECT_EQ(sequence.prompt, 2u);
    EXPECT_EQ(sequence.seen, 2u);
  }
}

}  // namespace
}  // namespace easydel::generation
