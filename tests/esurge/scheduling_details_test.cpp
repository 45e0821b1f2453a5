// Small promises of the scheduler, each on a few requests.
#include <gtest/gtest.h>

#include "esurge/fake_engine.h"

namespace easydel::test {
namespace {

struct PlainEngine : FakeEngine {
  explicit PlainEngine(int64_t budget, std::vector<CacheGroup> groups = {full_group()},
                       SchedulingPolicy policy = SchedulingPolicy::fcfs)
      : FakeEngine(
            [&] {
              SchedulerConfig config;
              config.policy = policy;
              config.max_num_batched_tokens = budget;
              config.check_every_step = true;
              return config;
            }(),
            CacheLayout{4, std::move(groups), false}, 1000000, {.vocabulary = 1000}) {}
};

TEST(SchedulingDetails, AStopCountsMoreThanTheLengthThatItReaches) {
  Scheduler scheduler({}, {4, {full_group()}, false}, {10000, false});
  const RequestId id = scheduler.add(request_of(text_of(4), 1));
  scheduler.schedule();
  scheduler.finish(std::vector<StepResult>{{{id, 0}, {7}, true}});
  const std::vector<SequenceEnd> ended = scheduler.take_ended();
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_EQ(ended[0].reason, FinishReason::stop);
}

TEST(SchedulingDetails, AProposalIsForOneStep) {
  Scheduler scheduler({}, {4, {full_group()}, false}, {10000, false});
  const RequestId id = scheduler.add(request_of(text_of(4), 20));
  scheduler.schedule();
  scheduler.finish(std::vector<StepResult>{{{id, 0}, {7}}});
  scheduler.propose({id, 0}, 2);
  EXPECT_EQ(scheduler.schedule().entries.at(0).drafts, 2);
  scheduler.finish(std::vector<StepResult>{{{id, 0}, {7, 7, 7}}});
  EXPECT_EQ(scheduler.schedule().entries.at(0).drafts, 0);
}

TEST(SchedulingDetails, ARequestWaitsForAPrefixThatAnotherOneComputes) {
  PlainEngine engine(16);
  engine.add(request_of(text_of(100)));
  engine.step();
  const RequestId same = engine.add(request_of(text_of(100)));
  SchedulerRequest whole = request_of(text_of(100)), other = whole;
  whole.max_cached_tokens = 0;
  other.root.salt = "other";
  const RequestId all = engine.add(whole), apart = engine.add(other);
  const StepPlan first = engine.step(), second = engine.step();
  EXPECT_EQ(engine.tokens_of(first, same) + engine.tokens_of(second, same), 0);
  EXPECT_GT(engine.tokens_of(first, all) + engine.tokens_of(second, all), 0) << "its whole prompt is computed anyway";
  EXPECT_EQ(engine.scheduler.running(), 3) << "roots share nothing, so the other one does not wait";
  EXPECT_EQ(engine.scheduler.waiting(), 1);
  engine.run();
  EXPECT_EQ(engine.answer(same).end.cached_tokens, 99);
  EXPECT_EQ(engine.answer(all).end.cached_tokens, 0);
  EXPECT_EQ(engine.answer(apart).end.cached_tokens, 0);
}

TEST(SchedulingDetails, EveryChoiceKnowsWhatOfItsPromptWasCached) {
  PlainEngine engine(64);
  engine.add(request_of(text_of(10)));
  engine.run();
  SchedulerRequest two = request_of(text_of(10), 3);
  two.choices = 2;
  const RequestId id = engine.add(two);
  engine.run();
  EXPECT_EQ(engine.answer(id, 0).end.cached_tokens, 9);
  EXPECT_EQ(engine.answer(id, 1).end.cached_tokens, 9);
}

TEST(SchedulingDetails, TheStateAtTheEndOfAPromptIsKept) {
  PlainEngine engine(64, {full_group(), state_group()});
  engine.add(request_of(text_of(6), 9));
  engine.run();
  std::vector<TokenId> longer = text_of(6);
  longer.insert(longer.end(), {500, 501});
  const RequestId id = engine.add(request_of(longer));
  engine.run();
  EXPECT_EQ(engine.answer(id).end.cached_tokens, 6);
}

TEST(SchedulingDetails, PromptsShareAStepByPriorityThenByWhatTheyStillNeed) {
  const auto shares = [](const std::vector<std::pair<int64_t, int64_t>>& sizes_and_priorities) {
    PlainEngine engine(32, {full_group()}, SchedulingPolicy::priority);
    std::vector<RequestId> ids;
    for (const auto& [size, priority] : sizes_and_priorities) {
      SchedulerRequest request = request_of(text_of(size, TokenId(1000 * (ids.size() + 1))));
      request.priority = priority;
      ids.push_back(engine.add(std::move(request)));
      engine.step();
    }
    const StepPlan plan = engine.step();
    std::vector<int64_t> out;
    for (const RequestId id : ids) out.push_back(engine.tokens_of(plan, id));
    return out;
  };
  // Half goes to the first by priority and arrival. Of the others the shortest of the best priority gets the rest.
  EXPECT_EQ(shares({{400, 1}, {400, 0}, {200, 1}}), (std::vector<int64_t>{0, 16, 16}));
  EXPECT_EQ(shares({{400, 1}, {400, 0}, {200, 1}, {900, 0}}), (std::vector<int64_t>{0, 16, 0, 16}));
}

TEST(SchedulingDetails, EveryPromptGoesOnEvenWithStepsOfOneToken) {
  PlainEngine engine(1);
  const RequestId a = engine.add(request_of(text_of(20, 100))), b = engine.add(request_of(text_of(10, 200)));
  int64_t of_a = 0, of_b = 0;
  for (int i = 0; i < 10; ++i) {
    const StepPlan plan = engine.step();
    of_a += engine.tokens_of(plan, a), of_b += engine.tokens_of(plan, b);
  }
  EXPECT_EQ(of_a, 5);
  EXPECT_EQ(of_b, 5);
}

TEST(SchedulingDetails, WhatWasCachedIsSaidOfTheFirstAdmission) {
  SchedulerConfig config;
  config.max_num_batched_tokens = 64;
  FakeEngine engine(config, {4, {full_group()}, false}, 800, {.vocabulary = 1000});
  engine.add(request_of(text_of(8, 100), 13));
  const RequestId id = engine.add(request_of(text_of(8, 200), 13));
  engine.run();
  EXPECT_GE(engine.answer(id).end.preemptions, 1);
  EXPECT_EQ(engine.answer(id).end.cached_tokens, 0) << "what it finds when it comes back is its own";
}

TEST(SchedulingDetails, KeepNewRequestsForNewWeights) {
  SchedulerConfig config;
  config.check_every_step = true;
  FakeEngine engine(config, {4, {full_group(), state_group()}, false}, 100000);
  const RequestId known = engine.add(request_of(text_of(9), 12)), waits = engine.add(request_of(text_of(9, 50), 3));
  engine.step();
  engine.scheduler.await_new_weights();
  const RequestId next = engine.add(request_of(text_of(9), 5)), aborted = engine.add(request_of(text_of(5), 5));
  EXPECT_FALSE(engine.scheduler.has_left_weights());
  EXPECT_THROW(engine.scheduler.take_new_weights(false), Bug);
  engine.scheduler.abort(aborted);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(engine.tokens_of(engine.step(), next), 0);
  for (const RequestId id : {known, waits})
    EXPECT_EQ(engine.answer(id).tokens, engine.model.answer(engine.asked[id], 0));
  EXPECT_TRUE(engine.scheduler.has_left_weights());
  EXPECT_GT(engine.scheduler.cache().index().nodes(), 0);
  engine.scheduler.take_new_weights(false);
  EXPECT_EQ(engine.scheduler.cache().index().nodes(), 0) << "pages of old weights are of no use";
  engine.run();
  EXPECT_EQ(engine.answer(next).tokens, engine.model.answer(engine.asked[next], 0));
  EXPECT_EQ(engine.answer(next).end.cached_tokens, 0);
  EXPECT_TRUE(engine.answer(aborted).ended);
}

}  // namespace
}  // namespace easydel::test
