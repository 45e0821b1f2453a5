#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>

#include "esurge/fake_engine.h"
#include "esurge/trace_replay.h"

namespace easydel::test {
namespace {

// Every call that a scheduler has.
std::string trace_of_all_calls() {
  const TraceFile trace;
  SchedulerConfig config;
  config.max_num_seqs = 3, config.max_num_batched_tokens = 8;
  FakeEngine engine(config, {4, {full_group(), window_group(6)}, false}, 4000);
  SchedulerRequest request = request_of(text_of(10), 5);
  request.choices = 2, request.deadline = 40.5, request.root.salt = "its own";
  engine.add(request);
  const RequestId aborted = engine.add(request_of(text_of(6, 3), 9));
  engine.step(0.25);
  engine.scheduler.propose({1, 0}, 2);
  engine.scheduler.abort(aborted);
  engine.scheduler.abort(12345);
  engine.scheduler.pause(true);
  engine.step(1);
  engine.scheduler.resume();
  engine.scheduler.await_new_weights();
  engine.add(request_of(text_of(3), 2));
  while (!engine.scheduler.has_left_weights()) engine.step(2);
  engine.scheduler.take_new_weights(false);
  engine.scheduler.reset_prefix_cache();
  engine.scheduler.drain();
  engine.run();
  return trace.text();
}

TEST(SchedulerTrace, OfAllCallsIsReplayed) {
  const std::string lines = trace_of_all_calls();
  for (const char* const call : {"scheduler", "add", "propose", "abort", "pause", "resume", "await_new_weights",
                                 "take_new_weights", "drain", "schedule", "finish", "reset_prefix_cache"})
    EXPECT_NE(lines.find(std::string(R"({"call": ")") + call + '"'), std::string::npos) << call;
  EXPECT_EQ(replay_trace(lines), "");
  // Killed in the middle of a line.
  EXPECT_EQ(replay_trace(lines.substr(0, lines.size() - 5)), "");
}

TEST(SchedulerTrace, ShowsTheFirstPlanThatDiffers) {
  std::string lines = trace_of_all_calls();
  const std::string plan = R"("entries": [[1, 0, 0, 8, 0, 0]])";
  const size_t at = lines.find(plan);
  ASSERT_NE(at, std::string::npos) << lines;
  lines.replace(at, plan.size(), R"("entries": [[1, 0, 0, 7, 0, 0]])");
  const std::string difference = replay_trace(lines);
  EXPECT_NE(difference.find("[1, 0, 0, 8, 0, 0]"), std::string::npos) << difference;
  EXPECT_NE(difference.find("instead of"), std::string::npos);
}

TEST(SchedulerTrace, RefusesWhatIsNone) {
  const std::string lines = trace_of_all_calls(), first = lines.substr(0, lines.find('\n') + 1);
  const auto problem = [](const std::string& text) { return refusal([&] { replay_trace(text); }); };
  EXPECT_EQ(problem(""), "trace: it is empty\n    give a file of EASYDEL_ESURGE_TRACE");
  EXPECT_EQ(problem("{}\n"), "trace: a line has no 'call'\n    give a file of EASYDEL_ESURGE_TRACE");
  EXPECT_EQ(problem(first + "{\"call\": \"restore_index\"}\n"),
            "trace: it begins with a prefix cache, which it does not have\n    give a file of EASYDEL_ESURGE_TRACE");
  EXPECT_EQ(problem(first + "{\"call\": \"dance\"}\n"),
            "trace: there is no call 'dance'\n    give a file of EASYDEL_ESURGE_TRACE");
}

TEST(SchedulerTrace, OfTheGivenFileIsReplayed) {
  const char* const file = std::getenv("EASYDEL_ESURGE_REPLAY");
  if (file && *file) {
    EXPECT_EQ(replay_trace(read_file(file)), "");
  }
}

}  // namespace
}  // namespace easydel::test
