// Who is preempted, what it costs, and how a sequence comes back.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "esurge/fake_engine.h"

namespace easydel::test {
namespace {

constexpr int64_t page_size = 4;

struct Pool {
  int64_t pages = 8;
  SchedulingPolicy policy = SchedulingPolicy::fcfs;
  bool prefix_caching = true;
  int64_t budget = 64, steps_in_flight = 1;
};

// A page has 100 bytes.
struct SmallEngine : FakeEngine {
  explicit SmallEngine(Pool pool = {})
      : FakeEngine(
            [&] {
              SchedulerConfig config;
              config.max_num_batched_tokens = pool.budget;
              config.policy = pool.policy;
              config.prefix_caching = pool.prefix_caching;
              config.steps_in_flight = pool.steps_in_flight;
              config.check_every_step = true;
              return config;
            }(),
            CacheLayout{page_size, {full_group()}, false}, pool.pages * 100, {.vocabulary = 1000}) {}
  bool holds_pages(SequenceId id) const { return scheduler.known(id) && !scheduler.pages(id).empty(); }
};

std::vector<TokenId> prompt(int64_t size, int64_t number) { return text_of(size, TokenId(1000 * (number + 1))); }

int64_t pages_of(int64_t tokens) { return (tokens + page_size - 1) / page_size; }

// Sequences that stay keep growing while others come and go, so that some are preempted again and again.
struct Load {
  explicit Load(uint32_t seed) : engine({.pages = 14, .policy = SchedulingPolicy::priority}), random(seed) {}

  StepPlan step() {
    if (random() % 3 == 0 && engine.scheduler.requests() < 7) {
      SchedulerRequest request = request_of(prompt(2 + int64_t(random() % 10), added++), 4 + int64_t(random() % 30));
      request.priority = int64_t(random() % 3);
      if (random() % 4 == 0) request.choices = 2, request.max_tokens = 12;
      engine.add(request);
    }
    StepPlan plan = engine.step();
    for (const SequenceId id : plan.preempted) ++preemptions[{id.request, id.choice}];
    return plan;
  }

  SmallEngine engine;
  std::mt19937 random;
  int64_t added = 0;
  std::map<std::pair<RequestId, int64_t>, int64_t> preemptions;
};

TEST(Preemption, AfterTheThirdASequenceComesBackOnlyWithAllThatItMayNeed) {
  int64_t returned = 0;
  for (uint32_t seed = 1; seed <= 12; ++seed) {
    Load load(seed);
    for (int i = 0; i < 1500; ++i) {
      const StepPlan plan = load.step();
      for (const StepEntry& entry : plan.entries) {
        const auto found = load.preemptions.find({entry.id.request, entry.id.choice});
        if (found == load.preemptions.end() || found->second < 3 || !load.engine.holds_pages(entry.id)) continue;
        const SequencePages& pages = load.engine.scheduler.pages(entry.id);
        const SchedulerRequest& asked = load.engine.asked.at(entry.id.request);
        const auto held = int64_t(pages.tables[0].size());
        ASSERT_GE(held + pages.reserved_bytes / 100, pages_of(int64_t(asked.prompt.size()) + asked.max_tokens))
            << "seed " << seed << ", request " << entry.id.request;
        ++returned;
      }
    }
  }
  EXPECT_GT(returned, 100);
}

TEST(Preemption, AfterTheThirdASequenceIsNotChosenWhileAnotherCanBe) {
  for (uint32_t seed = 1; seed <= 12; ++seed) {
    Load load(seed);
    for (int i = 0; i < 1500; ++i) load.step();
    int64_t most = 0;
    for (const auto& [id, count] : load.preemptions) most = std::max(most, count);
    EXPECT_EQ(most, 3) << "seed " << seed << ": with others that were preempted less, none comes to four";
  }
}

TEST(Preemption, AdmitsNobodyInThatStepEvenIfThereIsRoom) {
  // The victim frees more pages than the other one needs, and a request comes in that step that would fit.
  const auto begin = [](SmallEngine& engine) {
    SchedulerRequest low = request_of(prompt(20, 1), 16);
    low.priority = 1;
    engine.add(low);
    engine.add(request_of(prompt(8, 2), 13));
  };
  const Pool pool{.pages = 10, .policy = SchedulingPolicy::priority, .prefix_caching = false};
  SmallEngine first(pool), engine(pool);
  begin(first), begin(engine);
  while (first.preemptions == 0 && first.steps < 50) first.step();
  while (engine.steps < first.steps - 1) engine.step();
  const RequestId quick = engine.add(request_of(prompt(2, 3), 1));
  const StepPlan plan = engine.step();
  ASSERT_EQ(plan.preempted.size(), 1u);
  EXPECT_EQ(engine.tokens_of(plan, quick), 0);
  EXPECT_GT(engine.tokens_of(engine.step(), quick), 0);
}

TEST(Preemption, CountsTheTokensThatAreComputedAgain) {
  int64_t several_times = 0;
  for (const int64_t budget : {3, 5, 9, 64}) {
    SmallEngine engine({.pages = 12, .prefix_caching = false, .budget = budget});
    for (int64_t i = 0; i < 12; ++i) engine.add(request_of(prompt(5 + i % 4, i), 36));
    engine.run();
    // Every token but the last is computed once; everything else is computed again.
    int64_t once = 0, again = 0;
    for (const auto& [id, request] : engine.asked) {
      const SequenceEnd& end = engine.answer(id).end;
      once += int64_t(request.prompt.size()) + request.max_tokens - 1;
      again += end.recomputed_tokens;
      several_times += end.preemptions > 1 ? 1 : 0;
    }
    EXPECT_GT(again, 0);
    EXPECT_EQ(engine.computed_tokens, once + again) << "steps of " << budget;
  }
  EXPECT_GT(several_times, 3);
}

TEST(Preemption, IsCountedAfterAPauseToo) {
  SmallEngine engine({.pages = 8});
  engine.add(request_of(prompt(8, 1), 13));
  const RequestId b = engine.add(request_of(prompt(8, 2), 13));
  engine.step();
  engine.scheduler.pause(true);
  engine.step();
  engine.scheduler.resume();
  engine.run();
  EXPECT_GE(engine.answer(b).end.preemptions, 1);
  EXPECT_EQ(engine.preemptions, engine.scheduler.preemptions());
}

TEST(Preemption, ChoosesTheOneWithTheFewestTokensThatAreNotInTheIndex) {
  SmallEngine engine({.pages = 8});
  const RequestId a = engine.add(request_of(prompt(12, 1), 8)), b = engine.add(request_of(prompt(10, 2), 8));
  StepPlan plan;
  while (plan.preempted.empty() && engine.steps < 20) plan = engine.step();
  // Each has four pages. The older one needs another: its 16 tokens are in the index, but not all 14 of the later one.
  ASSERT_EQ(plan.preempted.size(), 1u);
  EXPECT_EQ(plan.preempted[0].request, a);
  engine.run();
  EXPECT_EQ(engine.answer(b).end.preemptions, 0);
}

TEST(Preemption, ASequenceThatWaitsIsAdmittedAsSoonAsItsPagesAreFree) {
  SmallEngine engine({.pages = 8, .prefix_caching = false});
  const RequestId a = engine.add(request_of(prompt(16, 1), 6)), b = engine.add(request_of(prompt(16, 2), 4));
  engine.run();
  EXPECT_EQ(engine.answer(b).steps.front(), engine.answer(a).steps.back() + 1);
}

// An aborted sequence may be in a plan for a token that will not come: its state is not kept.
TEST(Preemption, KeepsNoStateOfTokensThatDidNotCome) {
  SchedulerConfig config;
  config.steps_in_flight = 2;
  config.check_every_step = true;
  Scheduler scheduler(config, {page_size, {full_group(), state_group()}, false}, {1000000, false});
  const RequestId id = scheduler.add(request_of(prompt(3, 1), 10));
  scheduler.schedule();
  scheduler.schedule();  // computes the fourth token, which ends a page
  scheduler.abort(id);
  scheduler.finish({});
  scheduler.finish({});
  EXPECT_EQ(scheduler.requests(), 0);
  scheduler.check_pages();
}

}  // namespace
}  // namespace easydel::test
