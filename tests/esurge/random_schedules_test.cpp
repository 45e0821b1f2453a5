// Random requests, pools and calls on the fake model. EASYDEL_SCHEDULES=100000 runs more of them than CI does,
// EASYDEL_SCHEDULE=SEED one of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <random>

#include "easydel/base/log.h"
#include "esurge/fake_engine.h"
#include "esurge/trace_replay.h"

namespace easydel::test {
namespace {

class Random {
 public:
  explicit Random(uint64_t seed) : source_(seed) {}
  int64_t from(int64_t low, int64_t high) { return low + int64_t(source_() % uint64_t(high - low + 1)); }
  bool chance(int64_t percent) { return from(0, 99) < percent; }

 private:
  std::mt19937_64 source_;
};

struct Totals {
  int64_t schedules = 0, preempted = 0, recomputed = 0, hits = 0, hits_in_pages = 0, copies = 0, accepted = 0,
          rejected = 0, aborted = 0, timed_out = 0, refused = 0, forks = 0, releases = 0, cut = 0, scored_hits = 0;
};

CacheLayout random_layout(Random& random) {
  CacheLayout layout;
  layout.page_size = std::array{1, 2, 3, 4, 8}[size_t(random.from(0, 4))];
  const int64_t span = random.from(1, 12);
  switch (random.from(0, 8)) {
    case 0:
    case 1:
      layout.groups = {full_group()};
      break;
    case 2:
      layout.groups = {full_group(), window_group(span)};
      break;
    case 3:
      layout.groups = {window_group(span)};
      break;
    case 4:
      layout.groups = {full_group(), chunk_group(span)};
      break;
    case 5:
      layout.groups = {state_group()};
      break;
    case 6:
      layout.groups = {full_group(), state_group()};
      break;
    case 7:
      layout.groups = {state_group(), window_group(span), full_group(), window_group(span + 3)};
      break;
    default:
      layout.groups = {full_group(70), full_group(30), chunk_group(span), state_group(80)};
  }
  layout.roles_matter = random.chance(30);
  return layout;
}

SchedulerRequest random_request(Random& random, const std::vector<TokenId>& text, int64_t max_prompt, bool sampled) {
  SchedulerRequest request;
  // Beginnings are shared, ends differ.
  const int64_t length = random.from(1, max_prompt), shared = random.from(0, length);
  request.prompt.assign(text.begin(), text.begin() + shared);
  while (int64_t(request.prompt.size()) < length) request.prompt.push_back(TokenId(random.from(0, 2)));
  request.max_tokens = random.chance(30) ? random.from(10, 30) : random.from(1, 12);
  if (sampled && random.chance(25)) request.choices = random.from(2, 3);
  request.priority = random.from(0, 2);
  if (random.chance(15)) request.root.salt = "s";
  if (random.chance(8))
    request.max_cached_tokens = random.from(0, length);
  else if (random.chance(30))
    request.prompt_scores = std::make_shared<PromptScores>(PromptScores{random.from(0, 3)});
  return request;
}

// One schedule; returns the digest of its decisions.
uint64_t run_schedule(uint64_t seed, Totals& totals) {
  Random random(seed);
  const CacheLayout layout = random_layout(random);
  SchedulerConfig config;
  config.max_num_seqs = random.from(1, 6);
  config.max_num_batched_tokens = random.chance(20) ? random.from(1, 3) : random.from(4, 24);
  config.long_prefill_token_threshold = random.chance(30) ? random.from(1, 8) : 0;
  config.policy = random.chance(40) ? SchedulingPolicy::priority : SchedulingPolicy::fcfs;
  config.prefix_caching = random.chance(80);
  config.window_aware_admission = random.chance(50);
  config.steps_in_flight = random.chance(35) ? 2 : 1;
  config.check_every_step = true;
  FakeModel model;
  model.vocabulary = random.from(2, 4);
  model.stop_every = random.chance(60) ? random.from(3, 15) : 0;

  std::vector<TokenId> text;
  for (int i = 0; i < 40; ++i) text.push_back(TokenId(random.from(0, 2)));
  const int64_t max_prompt = random.chance(30) ? 40 : 16;
  struct Arrival {
    int64_t step;
    SchedulerRequest request;
    int64_t abort_after;  // 0: never
  };
  std::vector<Arrival> arrivals;
  int64_t longest = 0;
  const int64_t step_tokens = config.max_num_batched_tokens * config.steps_in_flight;
  for (int64_t i = random.from(1, 9), step = 1; i > 0; --i) {
    step += random.chance(50) ? 0 : random.from(1, 6);
    arrivals.push_back({step, random_request(random, text, max_prompt, config.max_num_seqs >= 3),
                        random.chance(12) ? random.from(1, 10) : 0});
    SchedulerRequest& made = arrivals.back().request;
    if (random.chance(8)) made.deadline = double(step + random.from(0, 12));
    longest = std::max(longest, layout.max_bytes(int64_t(made.prompt.size()) + made.max_tokens, step_tokens));
  }
  const int64_t budget = longest * (random.chance(60) ? random.from(11, 14) : random.from(11, 40)) / 10;
  FakeEngine engine(config, layout, budget, model);
  std::map<RequestId, bool> aborted;
  if (random.chance(35))
    engine.drafts = [&](SequenceId id) {
      std::vector<TokenId> guess;
      if (!random.chance(60)) return guess;
      const SchedulerRequest& request = engine.asked.at(id.request);
      const std::vector<TokenId> right = engine.model.answer(request, id.choice);
      const auto known = engine.scheduler.tokens(id).size() - request.prompt.size();
      for (int64_t k = random.from(1, 4); k > 0; --k) {
        const size_t at = known + guess.size();
        guess.push_back(at < right.size() && random.chance(75) ? right[at] : TokenId(random.from(0, 3)));
      }
      return guess;
    };

  size_t next = 0;
  std::vector<std::pair<int64_t, RequestId>> aborts;
  int64_t step = 0, pause_until = 0;
  for (; (next < arrivals.size() || engine.scheduler.requests() > 0) && step < 4000; ++step) {
    for (; next < arrivals.size() && arrivals[next].step <= step; ++next) {
      try {
        const RequestId id = engine.add(arrivals[next].request);
        if (arrivals[next].abort_after > 0) aborts.emplace_back(step + arrivals[next].abort_after, id);
      } catch (const UserError&) {
        ++totals.refused;
      }
    }
    for (const auto& [at, id] : aborts)
      if (at == step) engine.scheduler.abort(id);
    if (pause_until == 0 && random.chance(1)) engine.scheduler.pause(random.chance(50)), pause_until = step + 3;
    if (pause_until == step) engine.scheduler.resume(), pause_until = 0;
    const StepPlan plan = engine.step(double(step));
    EXPECT_LE(plan.tokens, config.max_num_batched_tokens);
    EXPECT_TRUE(engine.windows_are_bounded);
    for (const StepEntry& entry : plan.entries) {
      const auto prompt = int64_t(engine.asked.at(entry.id.request).prompt.size());
      totals.cut += entry.begin > 0 && entry.begin < prompt;
    }
    if (testing::Test::HasFailure()) break;
  }
  engine.finish_all();
  EXPECT_EQ(engine.scheduler.requests(), 0) << "nothing more happens";
  for (const auto& [id, request] : engine.asked) {
    for (int64_t choice = 0; choice < request.choices; ++choice) {
      const FakeAnswer& got = engine.answer(id, choice);
      EXPECT_TRUE(got.ended);
      const std::vector<TokenId> right = engine.model.answer(request, choice);
      if (got.end.reason == FinishReason::abort) {
        EXPECT_LE(got.tokens.size(), right.size());
        EXPECT_TRUE(std::equal(got.tokens.begin(), got.tokens.end(), right.begin()));
        ++(got.end.timed_out ? totals.timed_out : totals.aborted);
      } else {
        EXPECT_EQ(got.tokens, right) << "request " << id << ", choice " << choice;
      }
      totals.recomputed += got.end.recomputed_tokens;
      totals.hits += got.end.cached_tokens > 0;
      totals.hits_in_pages += got.end.cached_tokens % layout.page_size > 0;
      totals.forks += choice > 0;
      EXPECT_LE(got.end.cached_tokens, request.max_cached_tokens);
      if (!request.prompt_scores || got.end.reason == FinishReason::abort) continue;
      EXPECT_EQ(request.prompt_scores->rows, model.prompt_scores(request)) << "request " << id;
      totals.scored_hits += got.end.cached_tokens > 0;
    }
  }
  const PagePools& pools = engine.scheduler.cache().pools();
  EXPECT_EQ(pools.used_bytes(), pools.idle_bytes()) << "pages are lost";
  engine.scheduler.pause(true);
  EXPECT_EQ(pools.used_bytes(), 0) << "pages are lost";
  EXPECT_EQ(pools.resident_bytes(), 0);
  EXPECT_EQ(engine.scheduler.cache().index().nodes(), 0);
  engine.scheduler.check_pages();
  ++totals.schedules;
  totals.preempted += engine.preemptions, totals.copies += engine.copies, totals.accepted += engine.accepted;
  totals.rejected += engine.rejected, totals.releases += engine.releases;
  return engine.digest;
}

TEST(RandomSchedules, FinishEveryRequestWithItsOwnTokensAndLoseNoPage) {
  log::set_level(log::Level::warning);
  const char* const asked = std::getenv("EASYDEL_SCHEDULES");
  const char* const one = std::getenv("EASYDEL_SCHEDULE");
  const int64_t count = one ? std::atoll(one) : asked ? std::atoll(asked) : 20000;
  Totals totals;
  for (int64_t seed = one ? count : 1; seed <= count; ++seed) {
    try {
      const uint64_t digest = run_schedule(uint64_t(seed), totals);
      if (seed % 16 == 0) {
        Totals again;
        EXPECT_EQ(run_schedule(uint64_t(seed), again), digest) << "decisions differ from run to run";
      }
    } catch (const Bug& bug) {
      ADD_FAILURE() << bug.what();
    }
    if (HasFailure()) {
      ADD_FAILURE() << "schedule " << seed;
      break;
    }
  }
  log::set_level(log::Level::info);
  // A run counts only if everything happened.
  const int64_t counts[] = {totals.preempted, totals.recomputed, totals.hits,    totals.hits_in_pages, totals.copies,
                            totals.accepted,  totals.rejected,   totals.aborted, totals.timed_out,     totals.refused,
                            totals.forks,     totals.releases,   totals.cut,     totals.scored_hits};
  for (size_t i = 0; i < std::size(counts) && !one && !HasFailure(); ++i)
    EXPECT_GT(counts[i], count / 100) << "count " << i;
  std::printf("%lld schedules: %lld preemptions, %lld tokens computed again, %lld hits, %lld inside a page\n",
              static_cast<long long>(totals.schedules), static_cast<long long>(totals.preempted),
              static_cast<long long>(totals.recomputed), static_cast<long long>(totals.hits),
              static_cast<long long>(totals.hits_in_pages));
}

TEST(RandomSchedules, AreReplayedFromTheirTraces) {
  log::set_level(log::Level::warning);
  for (uint64_t seed = 1; seed <= 60 && !HasFailure(); ++seed) {
    const TraceFile trace;
    Totals totals;
    run_schedule(seed, totals);
    const std::string lines = trace.text();
    EXPECT_NE(lines.find(R"({"call": "schedule")"), std::string::npos);
    EXPECT_EQ(replay_trace(lines), "") << "schedule " << seed;
  }
  log::set_level(log::Level::info);
}

}  // namespace
}  // namespace easydel::test
