// Time of one step of the engine's scheduler, without a model: scheduler_bench [--steps 2000]. 256 sequences run, and
// the prefix index holds 100,000 pages.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "easydel/base/log.h"
#include "easydel/esurge/scheduler.h"
#include "measure.h"

namespace easydel::bench {
namespace {

using namespace esurge;

struct Run {
  Scheduler scheduler;
  std::vector<double> microseconds = {};
  TokenId next = 1;

  // Plans and finishes one step. The model's part takes no time.
  void step() {
    const auto begin = std::chrono::steady_clock::now();
    const StepPlan plan = scheduler.schedule();
    const auto middle = std::chrono::steady_clock::now();
    std::vector<StepResult> results;
    for (const StepEntry& entry : plan.entries)
      for (int64_t c = 0; c < entry.draws; ++c)
        results.push_back({{entry.id.request, entry.id.choice + c}, {next++ % 50000}});
    const auto again = std::chrono::steady_clock::now();
    scheduler.finish(results);
    const std::chrono::duration<double, std::micro> spent =
        (middle - begin) + (std::chrono::steady_clock::now() - again);
    microseconds.push_back(spent.count());
    scheduler.take_ended();
  }
};

SchedulerRequest request(int64_t prompt, int64_t answer, TokenId& token) {
  SchedulerRequest made;
  for (int64_t i = 0; i < prompt; ++i) made.prompt.push_back(token++ % 1000000);
  made.max_tokens = answer;
  return made;
}

void report(const char* what, Run& run) {
  std::vector<double> sorted = run.microseconds;
  std::ranges::sort(sorted);
  std::printf("%-58s median %7.1f us, 99%% %7.1f us, most %7.1f us\n", what, sorted[sorted.size() / 2],
              sorted[sorted.size() * 99 / 100], sorted.back());
  run.microseconds.clear();
}

void measure(int64_t steps, std::vector<CacheGroup> groups, const char* name) {
  std::printf("%s\n", name);
  constexpr int64_t page_size = 16, pages = 110000;
  SchedulerConfig config;
  config.max_num_seqs = 256;
  config.max_num_batched_tokens = 8192;
  int64_t page_bytes = 0;
  for (const CacheGroup& group : groups) page_bytes += group.page_bytes;
  Run run{Scheduler(config, {page_size, groups, false}, {pages * page_bytes, false})};
  TokenId token = 1;
  // The index is filled by requests that end: 100,000 pages of different texts.
  while (run.scheduler.cache().index().nodes() < 100000) {
    for (int i = 0; i < 16; ++i) run.scheduler.add(request(2048, 1, token));
    while (run.scheduler.requests() > 0) run.step();
  }
  for (int64_t i = 0; i < 256; ++i) run.scheduler.add(request(64, steps + 1000, token));
  while (run.scheduler.waiting() > 0) run.step();
  for (int i = 0; i < 10; ++i) run.step();
  run.microseconds.clear();
  for (int64_t i = 0; i < steps; ++i) run.step();
  report("  256 sequences, one token each", run);
  std::printf("  (%lld pages in the index, %lld evicted)\n",
              static_cast<long long>(run.scheduler.cache().index().nodes()),
              static_cast<long long>(run.scheduler.cache().index().evictions()));
}

// Requests of 512 tokens that share 448 come and go beside 200 that go on.
void measure_hits(int64_t steps) {
  std::printf("full attention, a request of 512 tokens in each step, 448 of them cached\n");
  SchedulerConfig config;
  config.max_num_seqs = 256;
  config.max_num_batched_tokens = 8192;
  Run run{Scheduler(config, {16, {{CacheGroup::Kind::full, 1000, 0}}, false}, {110000000, false})};
  TokenId token = 1;
  const SchedulerRequest shared = request(448, 32, token);
  for (int64_t i = 0; i < 200; ++i) run.scheduler.add(request(64, steps + 1000, token));
  while (run.scheduler.waiting() > 0) run.step();
  run.microseconds.clear();
  for (int64_t i = 0; i < steps; ++i) {
    SchedulerRequest next = shared;
    for (int j = 0; j < 64; ++j) next.prompt.push_back(token++ % 1000000);
    run.scheduler.add(next);
    run.step();
  }
  report("  200 sequences, and 32 that come and go", run);
}

}  // namespace
}  // namespace easydel::bench

int main(int count, char** values) {
  using namespace easydel;
  log::set_level(log::Level::warning);
  const int64_t steps = std::atoll(bench::argument(count, values, "steps", "2000").c_str());
  using esurge::CacheGroup;
  bench::measure(steps, {{CacheGroup::Kind::full, 1000, 0}}, "full attention");
  bench::measure(steps, {{CacheGroup::Kind::full, 1000, 0}, {CacheGroup::Kind::window, 1000, 512}},
                 "full attention and a window of 512");
  bench::measure_hits(steps);
}
