// Continuations that the engine scores beside generation have the bits of generation::Scorer.
#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include "easydel/base/error.h"
#include "easydel/esurge/engine.h"
#include "easydel/generation/scorer.h"
#include "easydel/tensor/threads.h"
#include "esurge/same_bits.h"

namespace easydel::esurge {
namespace {

class ScoredContinuations : public SameBits {
 protected:
  // Several continuations of each of a few contexts, which begin alike.
  std::vector<generation::ScoreRequest> drawn(Random& random) const {
    std::vector<TokenId> text;
    for (int i = 0; i < 120; ++i) text.push_back(TokenId(random.from(3, model_->vocabulary() - 1)));
    std::vector<generation::ScoreRequest> out;
    for (int question = 0; question < 5; ++question) {
      std::vector<TokenId> context(text.begin(), text.begin() + random.from(0, 119));
      for (int64_t i = random.from(1, 30); i > 0; --i)
        context.push_back(TokenId(random.from(3, model_->vocabulary() - 1)));
      for (int64_t choice = random.from(1, 3); choice > 0; --choice) {
        out.push_back({context, {}});
        for (int64_t i = random.from(1, 25); i > 0; --i)
          out.back().continuation.push_back(TokenId(random.from(3, model_->vocabulary() - 1)));
      }
    }
    return out;
  }
};

void expect_bits(const generation::TokenScores& found, const generation::TokenScores& expected, size_t index) {
  ASSERT_EQ(found.each.size(), expected.each.size()) << "request " << index;
  EXPECT_EQ(std::memcmp(found.each.data(), expected.each.data(), found.each.size() * sizeof(float)), 0)
      << "request " << index;
  EXPECT_EQ(found.logprob, expected.logprob) << "request " << index;
  EXPECT_EQ(found.is_greedy, expected.is_greedy) << "request " << index;
}

TEST_P(ScoredContinuations, HaveTheBitsOfTheScorerBesideGeneration) {
  int64_t cached = 0, preempted = 0, cut = 0;
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    Random random(seed);
    const std::vector<generation::ScoreRequest> asked = drawn(random);
    const std::vector<Request> beside = requests(random, 6);
    const std::vector<generation::TokenScores> expected = generation::Scorer(*model_, {.max_length = 512}).run(asked);
    const std::vector<std::string> answered = alone(beside);

    EngineSetup own = setup(std::array{1, 16, 100, 7}[seed - 1], std::nullopt);
    own.config.max_num_batched_tokens = random.from(1, 100);
    own.config.max_num_seqs = 16;
    own.config.enable_prefix_caching = seed != 3;
    const tensor::Threads threads(seed == 2 ? 2 : 1);
    std::vector<Request> scored;
    for (const generation::ScoreRequest& one : asked) {
      Request& request = scored.emplace_back();
      request.prompt = one.context, request.continuation = one.continuation;
      if (random.chance(20)) request.sampling.cache_salt = "own";
    }
    std::vector<Request> all = beside;
    all.insert(all.end(), scored.begin(), scored.end());
    const std::unique_ptr<StepEngine> engine = engine_for(own, all, 1, seed % 2 == 0);
    std::vector<std::string> texts(beside.size());
    std::vector<RequestOutput> found(asked.size());
    for (size_t i = 0; i < asked.size(); ++i) {
      if (i < beside.size())
        engine->add(beside[i], [&texts, i](const RequestOutput& output) { texts[i] = bits_of(output); });
      engine->add(scored[i], [&found, i](const RequestOutput& output) { found[i] = output; });
      if (random.chance(50)) engine->step();
    }
    while (engine->step()) {
    }
    EXPECT_EQ(texts, answered) << "schedule " << seed;
    for (size_t i = 0; i < asked.size(); ++i) {
      ASSERT_TRUE(found[i].finished && found[i].scores) << found[i].error;
      EXPECT_TRUE(found[i].outputs.empty());
      expect_bits(*found[i].scores, expected[i], i);
      EXPECT_LE(found[i].cached_tokens, int64_t(asked[i].context.size()) - 1);
      cached += found[i].cached_tokens;
    }
    preempted += engine->metrics().preemptions, cut += engine->counts().cut_prompts;
  }
  EXPECT_GT(cut, 0);
  if (GetParam().name.starts_with("story")) {
    EXPECT_GT(cached, 0);
    EXPECT_GT(preempted, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Families, ScoredContinuations, testing::ValuesIn(subjects()),
                         [](const auto& info) { return info.param.name; });

class ScoringEngine : public ScoredContinuations {};

TEST_P(ScoringEngine, GivesAllScoresInOrderOrRefusesAllOfThem) {
  Random random(9);
  std::vector<generation::ScoreRequest> asked = drawn(random);
  Engine engine(setup(16, 200));
  const std::vector<generation::TokenScores> found = engine.score(asked),
                                             expected = generation::Scorer(*model_, {.max_length = 512}).run(asked);
  ASSERT_EQ(found.size(), asked.size());
  for (size_t i = 0; i < asked.size(); ++i) expect_bits(found[i], expected[i], i);
  EXPECT_EQ(engine.metrics().generated_tokens, 0);
  asked[2].continuation.clear();
  EXPECT_THROW(engine.score(asked), UserError);
  engine.drain();
}

INSTANTIATE_TEST_SUITE_P(Story, ScoringEngine, testing::Values(subjects().front()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace easydel::esurge
