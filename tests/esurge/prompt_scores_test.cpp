// Log-probabilities of prompts that the prefix index keeps with their pages.
#include <gtest/gtest.h>

#include "easydel/esurge/page_scores.h"
#include "esurge/fake_engine.h"

namespace easydel::test {
namespace {

TokenLogprobs row_of(std::vector<TokenId> ids, std::vector<float> logprobs, size_t chosen) {
  return {std::move(ids), std::move(logprobs), chosen};
}

TEST(PageScores, GiveRowsOfAsManyTokensAndOfFewer) {
  const TokenLogprobs likely = row_of({7, 8, 9}, {-1, -2, -3}, 1), unlikely = row_of({7, 8, 9, 4}, {-1, -2, -3, -9}, 3);
  const PageScores scores = PageScores().with(2, std::vector{likely, unlikely}, 3).value();
  EXPECT_EQ(scores.count(1), -1);
  EXPECT_EQ(scores.count(2), 3);
  EXPECT_EQ(scores.count(4), -1);
  EXPECT_EQ(scores.get(2, 8, 3), likely);
  EXPECT_EQ(scores.get(3, 4, 3), unlikely);
  EXPECT_EQ(scores.get(2, 8, 1), row_of({7, 8}, {-1, -2}, 1)) << "the token itself is always there";
  EXPECT_EQ(scores.get(2, 8, 2), row_of({7, 8}, {-1, -2}, 1));
  EXPECT_EQ(scores.get(3, 4, 2), row_of({7, 8, 4}, {-1, -2, -9}, 2));
  EXPECT_EQ(scores.get(3, 4, 0), row_of({4}, {-9}, 0));
  EXPECT_EQ(scores.bytes(), 4 * 12 + 6 * 8);
}

TEST(PageScores, KeepTheRowWithMoreTokens) {
  const auto one = [](TokenId id) { return row_of({id, 5}, {-1, -4}, 1); };
  const auto two = [](TokenId id) { return row_of({id, id + 1, 5}, {-1, -2, -4}, 2); };
  const PageScores first = PageScores().with(0, std::vector{one(10), two(20)}, 1).value();
  EXPECT_EQ(first.get(1, 5, 1), one(20)) << "of a row only what was asked is kept";
  EXPECT_FALSE(first.with(0, std::vector{one(10)}, 1)) << "it is there";
  EXPECT_FALSE(first.with(1, std::vector{row_of({5}, {-4}, 0)}, 0)) << "there is more";
  const PageScores more = first.with(1, std::vector{two(20), two(30)}, 2).value();
  EXPECT_EQ(more.get(0, 5, 1), one(10));
  EXPECT_EQ(more.get(1, 5, 2), two(20));
  EXPECT_EQ(more.get(2, 5, 2), two(30));
  EXPECT_EQ(more.bytes(), 3 * 12 + 5 * 8);
  // A vocabulary may have fewer tokens than were asked.
  const PageScores small = PageScores().with(0, std::vector{row_of({1, 0}, {-1, -2}, 0)}, 20).value();
  EXPECT_EQ(small.count(0), 20);
  EXPECT_EQ(small.get(0, 1, 15), row_of({1, 0}, {-1, -2}, 0));
}

struct ScoredEngine : FakeEngine {
  explicit ScoredEngine(std::vector<CacheGroup> groups = {full_group()}, int64_t bytes = 1000000, int64_t page_size = 4,
                        SchedulerConfig config = {})
      : FakeEngine(
            [&] {
              config.check_every_step = true;
              config.max_num_batched_tokens = 64;
              return config;
            }(),
            CacheLayout{page_size, std::move(groups), false}, bytes, {.vocabulary = 1000}) {}

  static SchedulerRequest scored(std::vector<TokenId> prompt, int64_t count) {
    SchedulerRequest request = request_of(std::move(prompt));
    request.prompt_scores = std::make_shared<PromptScores>(PromptScores{count});
    return request;
  }
  void expect_scores(RequestId id) { EXPECT_EQ(asked.at(id).prompt_scores->rows, model.prompt_scores(asked.at(id))); }
  // Runs a request alone; the number of its prompt's tokens that were cached.
  int64_t cached(std::vector<TokenId> prompt, int64_t count) {
    const RequestId id = add(scored(std::move(prompt), count));
    run();
    expect_scores(id);
    return answer(id).end.cached_tokens;
  }
};

// The first `shared` tokens of text_of(), and two that no other prompt has there.
std::vector<TokenId> beginning(int64_t shared) {
  std::vector<TokenId> prompt = text_of(shared);
  prompt.insert(prompt.end(), {TokenId(500 + shared), 7});
  return prompt;
}

TEST(PromptScores, AreFoundAsFarAsTheNextTokenIsTheSame) {
  for (const int64_t page_size : {1, 3, 4, 128}) {
    ScoredEngine engine({full_group()}, 1000000, page_size);
    EXPECT_EQ(engine.cached(text_of(23), 2), 0);
    for (int64_t shared = 0; shared <= 23; ++shared) {
      const int64_t before = engine.scored_tokens;
      // The scores after the last shared token are of another next token.
      EXPECT_EQ(engine.cached(beginning(shared), 2), std::max<int64_t>(0, shared - 1)) << shared;
      EXPECT_EQ(engine.scored_tokens - before, shared == 0 ? 1 : 2);
    }
    EXPECT_EQ(engine.cached(text_of(23), 2), 22) << "all of them";
  }
}

TEST(PromptScores, AreFoundIfAsManyTokensWereAsked) {
  ScoredEngine engine;
  EXPECT_EQ(engine.cached(text_of(11), 1), 0);
  EXPECT_EQ(engine.cached(text_of(11), 0), 10) << "fewer";
  EXPECT_EQ(engine.cached(text_of(11), 1), 10);
  EXPECT_EQ(engine.cached(text_of(11), 3), 0) << "more";
  EXPECT_EQ(engine.cached(text_of(11), 2), 10);
}

TEST(PromptScores, AreComputedWhereOnlyPagesAreThere) {
  ScoredEngine engine;
  engine.add(request_of(text_of(11)));
  engine.run();
  EXPECT_EQ(engine.cached(text_of(11), 0), 0);
  EXPECT_EQ(engine.cached(text_of(11), 0), 10);
  // A prompt with pages and scores up to the tenth token goes on with pages alone.
  const RequestId plain = engine.add(request_of(text_of(19)));
  engine.run();
  EXPECT_EQ(engine.answer(plain).end.cached_tokens, 11);
  EXPECT_EQ(engine.cached(text_of(20), 0), 10);
}

TEST(PromptScores, AreFoundBesideSiblingsWithoutAny) {
  ScoredEngine engine({full_group()}, 1000000, 128);
  EXPECT_EQ(engine.cached(beginning(20), 1), 0);
  for (const TokenId last : {1, 996, 997, 999}) {
    std::vector<TokenId> prompt = text_of(20);
    prompt.push_back(last);
    engine.add(request_of(prompt));
    engine.run();
  }
  std::vector<TokenId> next = text_of(20);
  next.push_back(998);
  EXPECT_EQ(engine.cached(next, 1), 19);
}

TEST(PromptScores, TakeRoomInTheBudgetAndGoWithTheirPages) {
  // Three pages of 400 bytes for a prompt, and 9 rows of 12 and 8 bytes.
  ScoredEngine engine({full_group(400)}, 3000);
  const PagePools& pools = engine.scheduler.cache().pools();
  const PrefixIndex& index = engine.scheduler.cache().index();
  engine.cached(text_of(10), 1);
  EXPECT_EQ(index.score_bytes(), 10 * 12 + 9 * 8);
  EXPECT_EQ(pools.used_bytes(), 3 * 400 + index.score_bytes());
  EXPECT_EQ(pools.idle_bytes(), pools.used_bytes());
  engine.cached(text_of(10, 100), 1);
  EXPECT_EQ(index.score_bytes(), 2 * (10 * 12 + 9 * 8));
  engine.cached(text_of(10, 200), 1);
  EXPECT_LT(index.score_bytes(), 3 * (10 * 12 + 9 * 8)) << "pages were evicted with their scores";
  EXPECT_EQ(engine.cached(text_of(10, 200), 1), 9);
  engine.scheduler.pause(true);
  EXPECT_EQ(index.score_bytes(), 0);
  EXPECT_EQ(pools.used_bytes(), 0);
}

TEST(PromptScores, AreNotKeptWithoutRoom) {
  ScoredEngine engine({full_group(100)}, 350);
  EXPECT_EQ(engine.cached(text_of(11), 20), 0);
  EXPECT_EQ(engine.scheduler.cache().index().score_bytes(), 0);
  EXPECT_EQ(engine.cached(text_of(11), 20), 0) << "and so it is computed again";
}

TEST(PromptScores, GoBeforeAPageThatARunningSequenceNeeds) {
  // Scores of the prompt's pages, which are in use, are all that can be given up for the pages of the answer.
  ScoredEngine engine({full_group(100)}, 700);
  SchedulerRequest request = ScoredEngine::scored(text_of(11), 0);
  request.max_tokens = 16;
  const RequestId id = engine.add(request);
  engine.step();
  EXPECT_GT(engine.scheduler.cache().index().score_bytes(), 0);
  engine.run();
  EXPECT_EQ(engine.answer(id).end.reason, FinishReason::length);
  EXPECT_EQ(engine.scheduler.cache().index().score_bytes(), 0);
}

TEST(PromptScores, AreComputedOnceForRequestsThatArriveTogether) {
  ScoredEngine engine;
  std::vector<TokenId> other = text_of(30);
  other.push_back(99);
  const RequestId first = engine.add(ScoredEngine::scored(text_of(33), 1)),
                  second = engine.add(ScoredEngine::scored(other, 1));
  engine.run();
  engine.expect_scores(first), engine.expect_scores(second);
  EXPECT_EQ(engine.answer(second).end.cached_tokens, 29);
  EXPECT_EQ(engine.computed_tokens, 33 + 2);
  // One that wants more does not wait for them.
  const RequestId few = engine.add(ScoredEngine::scored(text_of(33, 200), 1)),
                  many = engine.add(ScoredEngine::scored(text_of(30, 200), 2));
  engine.step();
  EXPECT_EQ(engine.scheduler.waiting(), 0);
  engine.run();
  engine.expect_scores(few), engine.expect_scores(many);
  EXPECT_EQ(engine.answer(many).end.cached_tokens, 0);
}

TEST(PromptScores, GoOnFromAnEarlierStateWhereLayersHaveStates) {
  ScoredEngine engine({full_group(), state_group(100)});
  EXPECT_EQ(engine.cached(text_of(150), 1), 0);  // chunks of 64 tokens
  const int64_t before = engine.scored_tokens;
  EXPECT_EQ(engine.cached(beginning(140), 1), 128);
  EXPECT_EQ(engine.scored_tokens - before, 2) << "scores are known up to the 139th token";
}

TEST(PromptScores, StayWithAPromptThatIsPreempted) {
  ScoredEngine engine;
  const RequestId id = engine.add(ScoredEngine::scored(text_of(200), 1));
  engine.step();
  engine.scheduler.pause(true);
  engine.scheduler.resume();
  engine.run();
  engine.expect_scores(id);
  EXPECT_EQ(engine.scored_tokens, 199) << "none is computed twice";
}

TEST(PromptScores, AreNotThoseOfASequenceThatHasOutgrownItsFrequencies) {
  SchedulerConfig config;
  config.restart_length = 12;
  ScoredEngine engine({full_group()}, 1000000, 4, config);
  SchedulerRequest request = ScoredEngine::scored(text_of(10), 1);
  request.max_tokens = 8;
  engine.add(request);
  engine.run();
  // All of its tokens were computed again for the longer length, but its prompt's scores were not.
  EXPECT_EQ(engine.cached(beginning(16), 1), 0);
  EXPECT_EQ(engine.cached(text_of(9), 1), 8) << "of the shorter length they are there";
}

TEST(PrefixIndex, HasAPromptThatEndsInsideAPageWhileItsAnswerGoesOn) {
  ScoredEngine engine({full_group()}, 1000000, 128);
  engine.add(request_of(text_of(60), 30));
  std::vector<TokenId> other = text_of(50);
  other.push_back(99);
  const RequestId second = engine.add(request_of(other));
  for (int i = 0; i < 3; ++i) engine.step();
  EXPECT_EQ(engine.answer(second).end.cached_tokens, 50) << "it waits for less than a page";
  EXPECT_EQ(engine.scheduler.running(), 1);
  engine.run();
  EXPECT_EQ(engine.computed_tokens, 60 + 29 + 1);
}

TEST(PrefixIndex, NobodyWaitsForAFewTokens) {
  ScoredEngine engine({full_group()}, 1000000, 128);
  engine.add(request_of(text_of(40)));
  engine.add(request_of(beginning(15)));
  engine.step();
  EXPECT_EQ(engine.scheduler.waiting(), 0);
  engine.run();
}

}  // namespace
}  // namespace easydel::test
