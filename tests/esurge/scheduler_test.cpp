// What the scheduler promises, counted in steps.
#include <gtest/gtest.h>

#include <algorithm>

#include "easydel/base/log.h"
#include "esurge/fake_engine.h"
#include "support/data.h"

namespace easydel::test {
namespace {

struct Limits {
  SchedulerConfig config = {};
  std::vector<CacheGroup> groups = {full_group()};
  int64_t bytes = 100000000;
  int64_t page_size = 16;
  int64_t stop_every = 0;
};

struct Engine : FakeEngine {
  explicit Engine(Limits limits = {})
      : FakeEngine(
            [&] {
              limits.config.check_every_step = limits.page_size * limits.bytes < 100000000;
              return limits.config;
            }(),
            CacheLayout{limits.page_size, limits.groups, false}, limits.bytes,
            {.vocabulary = 1000, .stop_every = limits.stop_every}) {}
};

Limits with(int64_t max_num_batched_tokens, int64_t max_num_seqs = 32) {
  Limits limits;
  limits.config.max_num_batched_tokens = max_num_batched_tokens;
  limits.config.max_num_seqs = max_num_seqs;
  return limits;
}

// Different prompts share nothing.
std::vector<TokenId> prompt(int64_t size, int64_t number) { return text_of(size, TokenId(1000000 * (number + 1))); }

TEST(Scheduler, KeepsDecodingWhileALongPromptIsPrefilled) {
  Engine engine(with(512));
  std::vector<RequestId> decoding;
  for (int64_t i = 0; i < 16; ++i) decoding.push_back(engine.add(request_of(prompt(8, i), 2000)));
  for (int i = 0; i < 3; ++i) engine.step();
  const RequestId slow = engine.add(request_of(prompt(200000, 100), 4));
  for (int step = 0; step < 400; ++step) {
    const StepPlan plan = engine.step();
    for (const RequestId id : decoding) ASSERT_EQ(engine.tokens_of(plan, id), 1) << "step " << step;
    ASSERT_EQ(engine.tokens_of(plan, slow), 512 - 16) << "the rest is the prompt's";
  }
}

TEST(Scheduler, ComputesATextWholeAndTheOldestFirst) {
  Limits limits = with(100, 50);
  limits.groups = {};
  limits.config.shared_text_tokens = 40;
  limits.config.prefix_caching = false;
  Engine engine(limits);
  std::vector<RequestId> texts;
  for (const int64_t size : {30, 90, 10, 5, 30, 40}) texts.push_back(engine.add(request_of(prompt(size, size), 1)));
  const auto sizes = [&](const StepPlan& plan) {
    std::vector<int64_t> out;
    for (const RequestId id : texts) out.push_back(engine.tokens_of(plan, id));
    return out;
  };
  using Sizes = std::vector<int64_t>;
  EXPECT_EQ(sizes(engine.step()), (Sizes{30, 0, 10, 0, 0, 0})) << "what still fits shares the step";
  EXPECT_EQ(sizes(engine.step()), (Sizes{0, 90, 0, 0, 0, 0})) << "a longer text has a step of its own";
  EXPECT_EQ(sizes(engine.step()), (Sizes{0, 0, 0, 5, 30, 0}));
  EXPECT_EQ(sizes(engine.step()), (Sizes{0, 0, 0, 0, 0, 40}));
  EXPECT_THROW(engine.add(request_of(prompt(101, 9), 1)), Bug);
}

TEST(Scheduler, GivesAShortPromptItsFirstTokenBesideALongOne) {
  for (const int64_t budget : {64, 33, 256}) {
    Engine engine(with(budget));
    for (int64_t i = 0; i < 16; ++i) engine.add(request_of(prompt(8, i), 2000));
    for (int i = 0; i < 20; ++i) engine.step();
    engine.add(request_of(prompt(200000, 100), 4));
    for (int i = 0; i < 10; ++i) engine.step();
    const int64_t half = (budget - 16) / 2, before = engine.steps;
    const RequestId quick = engine.add(request_of(prompt(100, 200), 1));
    for (int i = 0; i < 1000 && !engine.answer(quick).ended; ++i) engine.step();
    EXPECT_LE(engine.steps - before, 1 + (100 + half - 1) / half) << "budget " << budget;
  }
}

TEST(Scheduler, GivesALongPromptAtMostHalfAndAtLeastAQuarterWhileOthersWait) {
  Engine engine(with(128));
  const RequestId slow = engine.add(request_of(prompt(100000, 1), 4));
  engine.step();
  for (int64_t i = 0; i < 200; ++i) engine.add(request_of(prompt(300, 10 + i), 1));
  for (int step = 0; step < 100; ++step) {
    const int64_t tokens = engine.tokens_of(engine.step(), slow);
    ASSERT_LE(tokens, 64);
    ASSERT_GE(tokens, 32);
  }
}

TEST(Scheduler, CapsTheShareOfOnePrompt) {
  Limits limits = with(128);
  limits.config.long_prefill_token_threshold = 20;
  Engine engine(limits);
  const RequestId slow = engine.add(request_of(prompt(100, 1), 1));
  for (int step = 0; step < 5; ++step) EXPECT_EQ(engine.tokens_of(engine.step(), slow), 20);
  EXPECT_TRUE(engine.answer(slow).ended);
}

TEST(Scheduler, LetsSequencesTakeTurnsIfTheStepIsSmallerThanTheirNumber) {
  Engine engine(with(3));
  SchedulerRequest seven = request_of(prompt(2, 1), 40);
  seven.choices = 7;
  const RequestId id = engine.add(seven);
  engine.step();
  for (int step = 0; step < 6; ++step) EXPECT_EQ(engine.step().tokens, 3);
  for (int64_t choice = 0; choice < 7; ++choice) {
    while (!engine.answer(id, choice).ended) engine.step();
    const std::vector<int64_t>& steps = engine.answer(id, choice).steps;
    for (size_t i = 1; i < steps.size(); ++i) EXPECT_LE(steps[i] - steps[i - 1], 3);
  }
}

TEST(Scheduler, RunsNoMoreThanMaxNumSeqsWithChoicesCounted) {
  Engine engine(with(64, 5));
  SchedulerRequest three = request_of(prompt(10, 1), 6);
  three.choices = 3;
  const RequestId a = engine.add(three), b = engine.add(request_of(prompt(10, 2), 6)), c = engine.add(three);
  engine.step();
  engine.step();
  EXPECT_EQ(engine.scheduler.running(), 4);
  EXPECT_EQ(engine.scheduler.waiting(), 1);
  engine.run();
  EXPECT_GT(engine.answer(c).steps.front(), engine.answer(a).steps.back());
  EXPECT_TRUE(engine.answer(b).ended);
}

TEST(Scheduler, ComputesThePromptOfSeveralChoicesOnce) {
  Engine engine(with(64));
  SchedulerRequest four = request_of(prompt(50, 1), 5);
  four.choices = 4;
  const RequestId id = engine.add(four);
  engine.run();
  EXPECT_EQ(engine.computed_tokens, 50 + 4 * 4);
  for (int64_t choice = 0; choice < 4; ++choice) {
    EXPECT_EQ(engine.answer(id, choice).tokens, engine.model.answer(four, choice));
    EXPECT_EQ(engine.answer(id, choice).steps.front(), 1);
  }
}

TEST(Scheduler, AdmitsInTheOrderOfArrivalUnlessPrioritiesSayOtherwise) {
  for (const SchedulingPolicy policy : {SchedulingPolicy::fcfs, SchedulingPolicy::priority}) {
    Limits limits = with(64, 1);
    limits.config.policy = policy;
    Engine engine(limits);
    std::vector<RequestId> ids;
    for (const int64_t priority : {5, 1, 5, 0}) {
      SchedulerRequest request = request_of(prompt(4, int64_t(ids.size())), 3);
      request.priority = priority;
      ids.push_back(engine.add(request));
    }
    engine.run();
    std::vector<int64_t> order;
    for (const RequestId id : ids) order.push_back(engine.answer(id).steps.front());
    const bool fcfs = policy == SchedulingPolicy::fcfs;
    EXPECT_EQ(order, fcfs ? std::vector<int64_t>({1, 4, 7, 10}) : std::vector<int64_t>({7, 4, 10, 1}));
  }
}

// A pool of few pages: `count` sequences that each grow to `pages` pages.
Limits tight(int64_t pages, SchedulingPolicy policy = SchedulingPolicy::fcfs) {
  Limits limits = with(64);
  limits.bytes = pages * 100;
  limits.page_size = 4;
  limits.config.policy = policy;
  return limits;
}

TEST(Scheduler, PreemptsTheLatestAndComputesOnlyAgainWhatWasEvicted) {
  Engine engine(tight(8));
  std::vector<std::string> lines;
  log::set_sink([&](log::Level, std::string_view line) { lines.emplace_back(line); });
  const RequestId a = engine.add(request_of(prompt(8, 1), 13)), b = engine.add(request_of(prompt(8, 2), 13));
  engine.run();
  log::set_sink({});
  EXPECT_EQ(lines,
            std::vector<std::string>{"esurge: request 2 is preempted for the 1st time: 16 computed tokens, 16 of "
                                     "them in the prefix index"});
  EXPECT_EQ(engine.answer(a).end.preemptions, 0);
  EXPECT_GE(engine.answer(b).end.preemptions, 1);
  EXPECT_EQ(engine.answer(b).tokens, engine.model.answer(engine.asked[b], 0));
  EXPECT_LT(engine.answer(b).end.recomputed_tokens, 20) << "its first pages stayed in the index";
}

TEST(Scheduler, PreemptsTheLowestPriority) {
  Engine engine(tight(8, SchedulingPolicy::priority));
  SchedulerRequest low = request_of(prompt(8, 1), 13), high = request_of(prompt(8, 2), 13);
  low.priority = 1;
  const RequestId a = engine.add(low), b = engine.add(high);
  engine.run();
  EXPECT_GE(engine.answer(a).end.preemptions, 1);
  EXPECT_EQ(engine.answer(b).end.preemptions, 0);
}

TEST(Scheduler, AdmitsNobodyInAStepThatPreempted) {
  Engine engine(tight(8));
  for (int64_t i = 0; i < 6; ++i) engine.add(request_of(prompt(6, i), 14));
  int64_t preempted = 0;
  for (int i = 0; i < 500 && engine.scheduler.requests() > 0; ++i) {
    const int64_t before = engine.scheduler.waiting();
    const StepPlan plan = engine.step();
    preempted += int64_t(plan.preempted.size());
    if (!plan.preempted.empty()) {
      EXPECT_EQ(engine.scheduler.waiting(), before + int64_t(plan.preempted.size()));
    }
  }
  EXPECT_GT(preempted, 0);
}

TEST(Scheduler, BringsAPreemptedSequenceBackBeforeThoseThatWait) {
  Engine engine(tight(8));
  const RequestId a = engine.add(request_of(prompt(8, 1), 13)), b = engine.add(request_of(prompt(8, 2), 13));
  while (engine.scheduler.preemptions() == 0) engine.step();
  const int64_t step = engine.steps;
  const RequestId c = engine.add(request_of(prompt(4, 3), 4));
  engine.run();
  EXPECT_TRUE(engine.answer(a).ended);
  const std::vector<int64_t>& steps = engine.answer(b).steps;
  const auto back = std::ranges::find_if(steps, [&](int64_t at) { return at > step; });
  ASSERT_NE(back, steps.end());
  EXPECT_LE(*back, engine.answer(c).steps.front());
}

TEST(Scheduler, PreemptsASequenceThreeTimesAndThenLetsItFinish) {
  Limits limits = tight(12);
  limits.config.prefix_caching = false;
  Engine engine(limits);
  for (int64_t i = 0; i < 12; ++i) engine.add(request_of(prompt(5, i), 36));
  engine.run();
  for (const auto& [id, answer] : engine.answers) {
    EXPECT_EQ(answer.end.reason, FinishReason::length);
    EXPECT_LE(answer.end.preemptions, 3);
  }
  EXPECT_GT(engine.scheduler.preemptions(), 5);
}

TEST(Scheduler, EndsARequestAtItsDeadlineWithWhatIsThere) {
  Engine engine(with(64, 1));
  SchedulerRequest request = request_of(prompt(4, 1), 100);
  request.deadline = 10;
  const RequestId running = engine.add(request), waiting = engine.add(request);
  for (int now = 1; now < 12; ++now) engine.step(now);
  for (const RequestId id : {running, waiting}) {
    EXPECT_EQ(engine.answer(id).end.reason, FinishReason::abort);
    EXPECT_TRUE(engine.answer(id).end.timed_out);
  }
  EXPECT_EQ(engine.answer(running).tokens.size(), 9u);
  EXPECT_EQ(engine.answer(waiting).tokens.size(), 0u);
  EXPECT_EQ(engine.scheduler.requests(), 0);
}

TEST(Scheduler, ComputesNothingMoreForAnAbortedRequest) {
  for (const int64_t steps_in_flight : {1, 2}) {
    Limits limits = with(64);
    limits.config.steps_in_flight = steps_in_flight;
    limits.config.prefix_caching = false;
    Engine engine(limits);
    const RequestId id = engine.add(request_of(prompt(40, 1), 100));
    for (int i = 0; i < 5; ++i) engine.step();
    engine.scheduler.abort(id);
    engine.scheduler.abort(12345);
    EXPECT_EQ(engine.tokens_of(engine.step(), id), 0);
    EXPECT_EQ(engine.scheduler.cache().pools().used_bytes(), 0);
    EXPECT_EQ(engine.scheduler.requests(), 0);
    EXPECT_EQ(engine.answer(id).end.reason, FinishReason::abort);
  }
}

TEST(Scheduler, PlansNothingWhileItIsPaused) {
  for (const bool destroy : {false, true}) {
    Engine engine(with(64));
    const RequestId id = engine.add(request_of(prompt(40, 1), 20));
    for (int i = 0; i < 5; ++i) engine.step();
    engine.scheduler.pause(destroy);
    EXPECT_TRUE(engine.step().entries.empty());
    EXPECT_EQ(engine.scheduler.cache().pools().resident_bytes() == 0, destroy);
    engine.scheduler.resume();
    engine.run();
    EXPECT_EQ(engine.answer(id).tokens, engine.model.answer(engine.asked[id], 0));
    EXPECT_EQ(engine.answer(id).end.preemptions, 0) << "a pause is not a preemption";
  }
}

TEST(Scheduler, FinishesWhatItHasWhileItDrains) {
  Engine engine(with(64, 1));
  const RequestId a = engine.add(request_of(prompt(4, 1), 3)), b = engine.add(request_of(prompt(4, 2), 3));
  engine.scheduler.drain();
  EXPECT_EQ(refusal([&] { engine.add(request_of(prompt(4, 3), 3)); }),
            "request: the engine is draining: it finishes what it has and takes nothing new");
  engine.run();
  EXPECT_EQ(engine.answer(a).tokens.size(), 3u);
  EXPECT_EQ(engine.answer(b).tokens.size(), 3u);
}

TEST(Scheduler, RefusesAtOnceWhatCouldNeverRun) {
  Limits limits = tight(8);
  limits.config.max_num_seqs = 3;
  limits.config.max_requests = 2;
  Engine engine(limits);
  EXPECT_EQ(refusal([&] { engine.add(request_of(prompt(20, 1), 13)); }),
            "request: a prompt of 20 tokens and an answer of up to 13 need 900 B of KV cache; all of it is 800 B\n"
            "    shorten the prompt, lower max_tokens, or raise esurge.hbm_utilization");
  SchedulerRequest request = request_of(prompt(4, 1), 4);
  request.choices = 4;
  EXPECT_EQ(
      refusal([&] { engine.add(request); }),
      "n: 4 choices are more than esurge.max_num_seqs 3\n    ask for fewer choices, or raise esurge.max_num_seqs");
  engine.add(request_of(prompt(20, 1), 12));
  engine.add(request_of(prompt(20, 2), 12));
  EXPECT_EQ(refusal([&] { engine.add(request_of(prompt(4, 3), 1)); }),
            "request: the engine has 2 requests already\n    try again later, or raise esurge.detokenizer_max_states");
  EXPECT_THROW(engine.add(request_of({}, 1)), Bug);
  engine.run();
  EXPECT_EQ(engine.answers.size(), 2u);
}

TEST(Scheduler, FailsTheRequestOfARowThatCannotBeUsedAndNoOther) {
  Scheduler scheduler({}, {4, {full_group()}, false}, {10000, false});
  SchedulerRequest two = request_of(prompt(4, 1), 5);
  two.choices = 2;
  const RequestId bad = scheduler.add(two), good = scheduler.add(request_of(prompt(4, 2), 2));
  scheduler.schedule();
  scheduler.finish(std::vector<StepResult>{{{bad, 0}, {}, false, true}, {{bad, 1}, {7}}, {{good, 0}, {7}}});
  ASSERT_EQ(scheduler.take_ended().size(), 2u);
  EXPECT_FALSE(scheduler.known({bad, 0}) || scheduler.known({bad, 1}));
  scheduler.schedule();
  scheduler.finish(std::vector<StepResult>{{{good, 0}, {8}}});
  const std::vector<SequenceEnd> ended = scheduler.take_ended();
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_EQ(ended[0].reason, FinishReason::length);
}

TEST(Scheduler, GivesTheSameTokensWithStepsThatOverlap) {
  for (const int64_t steps_in_flight : {1, 2}) {
    Limits limits = with(40);
    limits.config.steps_in_flight = steps_in_flight;
    limits.stop_every = 10;
    Engine engine(limits);
    for (int64_t i = 0; i < 12; ++i) engine.add(request_of(prompt(30, i), 40));
    engine.run();
    for (const auto& [id, request] : engine.asked) EXPECT_EQ(engine.answer(id).tokens, engine.model.answer(request, 0));
  }
}

TEST(Scheduler, VerifiesSpeculatedTokensOutOfWhatIsLeft) {
  Engine engine(with(10));
  const RequestId a = engine.add(request_of(prompt(4, 1), 40));
  engine.drafts = [&](SequenceId id) {
    const std::vector<TokenId> right = engine.model.answer(engine.asked[id.request], 0);
    const size_t known = engine.scheduler.tokens(id).size() - engine.asked[id.request].prompt.size();
    return std::vector<TokenId>(right.begin() + ptrdiff_t(known),
                                right.begin() + ptrdiff_t(std::min(known + 6, right.size())));
  };
  engine.step();
  EXPECT_EQ(engine.tokens_of(engine.step(), a), 7);
  EXPECT_EQ(engine.answer(a).tokens.size(), 8u);
  engine.add(request_of(prompt(100, 2), 1));
  const StepPlan plan = engine.step();
  EXPECT_EQ(engine.tokens_of(plan, a), 5) << "one token, and half of what is left";
  engine.run();
  EXPECT_EQ(engine.answer(a).tokens, engine.model.answer(engine.asked[a], 0));
  EXPECT_LT(engine.answer(a).steps.back(), 15);
}

TEST(Scheduler, CountsAdmissionsByTheWindowOnlyIfAsked) {
  for (const bool aware : {false, true}) {
    Limits limits = with(8);
    limits.page_size = 4;
    limits.groups = {window_group(8, 100)};
    limits.bytes = 1900;
    limits.config.window_aware_admission = aware;
    Engine engine(limits);
    engine.add(request_of(prompt(60, 1), 4));
    engine.add(request_of(prompt(60, 2), 4));
    engine.step();
    EXPECT_EQ(engine.scheduler.running(), aware ? 2 : 1);
    engine.run();
  }
}

}  // namespace
}  // namespace easydel::test
