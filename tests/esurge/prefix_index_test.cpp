// What of a prompt the index finds, and what leaves it first.
#include <gtest/gtest.h>

#include "easydel/esurge/cache_manager.h"
#include "esurge/fake_engine.h"

namespace easydel::test {
namespace {

// Every step is checked: tables, counts, and the rows that the fake model reads.
struct IndexedEngine : FakeEngine {
  explicit IndexedEngine(std::vector<CacheGroup> groups, int64_t bytes = 100000, bool roles = false,
                         SchedulerConfig config = {})
      : FakeEngine(
            [&] {
              config.check_every_step = true;
              config.max_num_batched_tokens = 64;
              return config;
            }(),
            CacheLayout{4, std::move(groups), roles}, bytes, {.vocabulary = 1000}) {}
  // Runs a request alone; the number of its prompt's tokens that were cached.
  int64_t cached(SchedulerRequest request) {
    const RequestId id = add(std::move(request));
    run();
    return answer(id).end.cached_tokens;
  }
  int64_t cached(std::vector<TokenId> prompt) { return cached(request_of(std::move(prompt))); }
};

TEST(PrefixIndex, CountsAHitToTheToken) {
  IndexedEngine engine({full_group()});
  EXPECT_EQ(engine.cached(text_of(10)), 0);
  std::vector<TokenId> other = text_of(7);
  other.insert(other.end(), {90, 91, 92});
  EXPECT_EQ(engine.cached(other), 7) << "one page is shared, three rows of the next are copied";
  EXPECT_EQ(engine.cached(text_of(3)), 2);
  EXPECT_EQ(engine.cached(text_of(9, 2)), 0);
}

TEST(PrefixIndex, NeverCoversTheLastTokenOfAPrompt) {
  IndexedEngine engine({full_group()});
  engine.cached(text_of(8));
  EXPECT_EQ(engine.cached(text_of(8)), 7);
  EXPECT_EQ(engine.cached(text_of(5)), 4);
  EXPECT_EQ(engine.cached(text_of(1)), 0);
}

TEST(PrefixIndex, HasGeneratedTokensToo) {
  IndexedEngine engine({full_group()});
  const RequestId id = engine.add(request_of(text_of(5), 8));
  engine.run();
  std::vector<TokenId> next = text_of(5);
  const auto& answer = engine.answer(id).tokens;
  next.insert(next.end(), answer.begin(), answer.end());
  next.push_back(7);
  EXPECT_EQ(engine.cached(next), 12) << "all but the last generated token, which was never computed";
}

TEST(PrefixIndex, KeepsRolesApartWhereTheyMatter) {
  IndexedEngine engine({full_group()}, 100000, true);
  const RequestId id = engine.add(request_of(text_of(5), 8));
  engine.run();
  std::vector<TokenId> next = text_of(5);
  const auto& answer = engine.answer(id).tokens;
  next.insert(next.end(), answer.begin(), answer.end());
  EXPECT_EQ(engine.cached(next), 5) << "what was generated is a prompt now";
}

TEST(PrefixIndex, SharesNothingBetweenRoots) {
  IndexedEngine engine({full_group()});
  engine.cached(text_of(9));
  for (const CacheRoot& root :
       {CacheRoot{.weights = "2"}, CacheRoot{.adapter = "a"}, CacheRoot{.format = "int8"}, CacheRoot{.salt = "me"},
        CacheRoot{.adapter_version = 1}, CacheRoot{.frequency_class = 1}}) {
    SchedulerRequest request = request_of(text_of(9));
    request.root = root;
    EXPECT_EQ(engine.cached(request), 0);
    EXPECT_EQ(engine.cached(request), 8);
  }
}

TEST(PrefixIndex, ComputesTokensWhoseHiddenStatesAreWanted) {
  IndexedEngine engine({full_group()});
  SchedulerRequest request = request_of(text_of(9));
  request.max_cached_tokens = 0;
  EXPECT_EQ(engine.cached(request), 0);
  EXPECT_EQ(engine.cached(request), 0);
  request.max_cached_tokens = 5;
  EXPECT_EQ(engine.cached(request), 5) << "scores of the others are wanted";
  EXPECT_EQ(engine.cached(text_of(9)), 8) << "its pages are in the index";
}

TEST(PrefixIndex, ComputesAPrefixOnceForRequestsThatArriveTogether) {
  IndexedEngine engine({full_group()});
  const RequestId first = engine.add(request_of(text_of(33)));
  std::vector<TokenId> other = text_of(30);
  other.push_back(99);
  const RequestId second = engine.add(request_of(other));
  engine.run();
  EXPECT_EQ(engine.answer(first).end.cached_tokens, 0);
  EXPECT_EQ(engine.answer(second).end.cached_tokens, 30);
  EXPECT_EQ(engine.computed_tokens, 33 + 1);
}

TEST(PrefixIndex, DoesNotWaitForAnAbortedPrefix) {
  SchedulerConfig config;
  IndexedEngine engine({full_group()}, 100000, false, config);
  const RequestId first = engine.add(request_of(text_of(600)));
  engine.step();
  const RequestId second = engine.add(request_of(text_of(599)));
  engine.step();
  EXPECT_EQ(engine.scheduler.waiting(), 1);
  engine.scheduler.abort(first);
  engine.run();
  EXPECT_EQ(engine.answer(second).end.reason, FinishReason::length);
  EXPECT_EQ(engine.answer(second).end.cached_tokens, 128) << "what the first one had computed";
}

TEST(PrefixIndex, EvictsTheLeastRecentlyUsedLeafFirst) {
  IndexedEngine engine({full_group(100)}, 700);
  EXPECT_EQ(engine.cached(text_of(9, 100)), 0);  // three pages each
  EXPECT_EQ(engine.cached(text_of(9, 200)), 0);
  EXPECT_EQ(engine.cached(text_of(9, 100)), 8);
  // The third text takes a free page, then the oldest: the end of the second text.
  EXPECT_EQ(engine.cached(text_of(9, 300)), 0);
  EXPECT_EQ(engine.cached(text_of(9, 100)), 8);
  EXPECT_LT(engine.cached(text_of(9, 200)), 8);
  EXPECT_GT(engine.scheduler.cache().index().evictions(), 0);
}

TEST(PrefixIndex, NeedsTheLastPagesOfAWindow) {
  IndexedEngine engine({full_group(10), window_group(6, 10)}, 100000);
  EXPECT_EQ(engine.cached(text_of(41)), 0);
  EXPECT_EQ(engine.cached(text_of(41)), 40) << "the window's passed pages are still in the index";
  IndexedEngine small({full_group(10), window_group(6, 100)}, 1300);
  EXPECT_EQ(small.cached(text_of(41)), 0);
  EXPECT_EQ(small.cached(text_of(40, 500)), 0);  // which takes the window's pages
  EXPECT_LT(small.cached(text_of(41)), 40);
}

TEST(PrefixIndex, GoesToTheLatestKeptState) {
  IndexedEngine engine({full_group(), state_group(100)});
  EXPECT_EQ(engine.cached(text_of(10)), 0);
  std::vector<TokenId> longer = text_of(14);
  EXPECT_EQ(engine.cached(longer), 10) << "the state at the prompt's end";
  std::vector<TokenId> other = text_of(9);
  other.push_back(99);
  EXPECT_EQ(engine.cached(other), 0) << "no state is kept inside the prompt";
}

TEST(PrefixIndex, KeepsStatesAtTheEndsOfChunksThatEndAPage) {
  IndexedEngine engine({state_group(100)});
  const RequestId id = engine.add(request_of(text_of(150)));
  engine.run();  // chunks of 64
  EXPECT_EQ(engine.answer(id).end.cached_tokens, 0);
  std::vector<TokenId> other = text_of(140);
  other.push_back(999);
  EXPECT_EQ(engine.cached(other), 128);
}

TEST(PrefixIndex, GivesStatesAQuarterOfTheBudget) {
  IndexedEngine engine({state_group(100)}, 1200);
  for (TokenId first = 1; first < 2000; first += 100) engine.cached(text_of(8, first));
  EXPECT_EQ(engine.scheduler.cache().pools().idle_bytes(), 300);
}

TEST(PrefixIndex, ComputesAPrefixOnceForRecurrentLayersToo) {
  IndexedEngine engine({full_group(), state_group(100)});
  const RequestId first = engine.add(request_of(text_of(60)));
  std::vector<TokenId> other = text_of(37);
  other.push_back(99);
  const RequestId second = engine.add(request_of(other));
  engine.run();
  EXPECT_EQ(engine.answer(first).end.cached_tokens, 0);
  EXPECT_EQ(engine.answer(second).end.cached_tokens, 36) << "the first one's chunk ends where the second can go on";
}

TEST(PrefixIndex, ForgetsEverythingWhenTheEngineIsIdle) {
  SchedulerConfig config;
  config.idle_reset_seconds = 10;
  config.idle_reset_min_interval = 60;
  IndexedEngine engine({full_group()}, 100000, false, config);
  engine.cached(text_of(20));
  const PagePools& pools = engine.scheduler.cache().pools();
  const auto at = [&](double now) { engine.step(now), engine.step(now); };
  at(5);
  EXPECT_GT(pools.resident_bytes(), 0);
  at(20);
  EXPECT_EQ(pools.resident_bytes(), 0);
  EXPECT_GT(engine.releases, 0);
  engine.add(request_of(text_of(20)));
  for (int i = 0; i < 5; ++i) engine.step(30);
  at(50);
  EXPECT_GT(pools.resident_bytes(), 0) << "less than a minute after the last reset";
  at(90);
  EXPECT_EQ(pools.resident_bytes(), 0);
}

TEST(PrefixIndex, CanBeSwitchedOff) {
  SchedulerConfig config;
  config.prefix_caching = false;
  IndexedEngine engine({full_group()}, 100000, false, config);
  engine.cached(text_of(20));
  EXPECT_EQ(engine.cached(text_of(20)), 0);
  EXPECT_EQ(engine.scheduler.cache().pools().used_bytes(), 0);
}

TEST(PrefixIndex, IsAsDeepAsTheLongestSequenceWithoutOverflowingTheStack) {
  CacheManager manager({1, {full_group(1)}, false}, 1 << 20, true);
  const std::vector<int32_t> text = text_of(200000);
  SequencePages pages;
  std::vector<PageOp> ops;
  CacheManager::Demand demand;
  demand.tokens = demand.max_tokens = 200001;
  ASSERT_TRUE(manager.admit(pages, {}, {text, {}, false}, 199999, demand, ops));
  ASSERT_TRUE(manager.extend(pages, 0, 200000, ops));
  manager.advance(pages, {text, {}, false}, 200000);
  manager.leave(pages, {text, {}, false}, 200000, true);
  manager.check_all({}, {});
  EXPECT_EQ(manager.cached({}, {text, {}, false}, 199999), 199999);
  EXPECT_EQ(manager.index().nodes(), 200000);
}

}  // namespace
}  // namespace easydel::test
