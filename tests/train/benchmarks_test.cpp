// Benchmarks while a model is trained: when they are made, what they leave behind, and that the run does
// not notice them. What a benchmark computes is another layer's business.
#include <gtest/gtest.h>

#include <cmath>
#include <csignal>

#include "easydel/data/byte_stream.h"
#include "easydel/train/state_files.h"
#include "support/data.h"
#include "train/small_run.h"

namespace easydel::train {
namespace {

using test::LogLines;
using test::small_run;
using test::TemporaryFolder;
using test::weights_of;

enum class Does : uint8_t { answer, fail, interrupt };

// The metric is a number of the weights, so that it differs from step to step.
struct FakeBenchmarks final : Benchmarks {
  explicit FakeBenchmarks(Does does = Does::answer) : does(does) {}
  std::optional<BenchmarkMetrics> run(const std::atomic<bool>& stop, const OnWork& on_work) override {
    ++runs;
    if (does == Does::fail) refuse("trainer.benchmarks[0]", "the harness is not well");
    if (does == Does::interrupt) {
      raise(SIGTERM);
      EXPECT_TRUE(stop.load());
      return std::nullopt;
    }
    on_work(1, 1);
    return BenchmarkMetrics{{"copa/acc", double(runs)}, {"copa/acc_stderr", 0.125}};
  }
  Does does;
  int runs = 0;
};

struct Seen : Watcher {
  void stepped(const StepReport& report) override {
    if (report.step == signal_after) raise(SIGTERM);
  }
  void benchmarked(const BenchmarkReport& report) override { steps.push_back(report.step); }
  int64_t signal_after = 0;
  std::vector<int64_t> steps;
};

struct Ended {
  Outcome outcome;
  std::vector<int64_t> steps;
  std::string weights;
};

Ended run(TrainerParts parts, Benchmarks* benchmarks, int64_t signal_after = 0) {
  Seen seen;
  seen.signal_after = signal_after;
  parts.watcher = &seen, parts.benchmarks = benchmarks;
  Trainer trainer(std::move(parts));
  Ended out;
  out.outcome = trainer.run();
  out.steps = seen.steps, out.weights = weights_of(trainer.model());
  return out;
}

std::vector<Value> lines_of(const std::filesystem::path& file) {
  std::vector<Value> out;
  data::for_each_line(file, [&](std::string_view line, int64_t) {
    out.push_back(parse_json(line));
    return true;
  });
  return out;
}

std::vector<int64_t> steps_with(const std::filesystem::path& file, const char* key) {
  std::vector<int64_t> out;
  for (const Value& line : lines_of(file))
    if (line.find(key)) out.push_back(*line.find("step")->as_int());
  return out;
}

const std::string keys = "max_training_steps: 5, benchmarks: [copa], benchmark_interval: 2, eval_on_start: true";

TEST(TrainingBenchmarks, AreMadeAtTheirStepsAndChangeNothing) {
  const TemporaryFolder folder;
  LogLines log;
  const Ended plain = run(small_run(folder.path(), "{max_training_steps: 5, model_name: plain}"), nullptr);
  FakeBenchmarks benchmarks;
  const Ended with = run(small_run(folder.path(), "{" + keys + "}"), &benchmarks);
  EXPECT_EQ(with.steps, (std::vector<int64_t>{0, 2, 4, 5}));
  EXPECT_EQ(with.weights, plain.weights);
  const auto out = folder / "out/small";
  EXPECT_EQ(steps_with(out / "metrics.jsonl", "eval/copa/acc"), with.steps);
  EXPECT_EQ(read_state(out / "run-5").history->last_benchmarks->step, 5);
  EXPECT_EQ(read_state(out / "run-5").history->last_benchmarks->metrics,
            (BenchmarkMetrics{{"copa/acc", 4}, {"copa/acc_stderr", 0.125}}));
  const std::string svg = test::read_file(out / "benchmarks.svg");
  EXPECT_NE(svg.find(">copa/acc<"), std::string::npos);
  EXPECT_EQ(svg.find("stderr"), std::string::npos);
  EXPECT_EQ(test::read_file(out / "curves.svg").find("copa"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(folder / "out/plain/benchmarks.svg"));
  const Ended again = run(small_run(folder.path(), "{" + keys + "}"), &benchmarks);
  EXPECT_TRUE(again.steps.empty()) << "nothing is left to do";
}

TEST(TrainingBenchmarks, AResumedRunRepeatsNoneAndLeavesNoneOut) {
  for (const char* more : {"report_metrics: true", "report_metrics: false"}) {
    const TemporaryFolder folder;
    LogLines log;
    const std::string yaml = str("{", keys, ", ", more, "}");
    FakeBenchmarks benchmarks;
    EXPECT_EQ(run(small_run(folder.path(), yaml), &benchmarks, 4).steps, (std::vector<int64_t>{0, 2})) << more;
    EXPECT_EQ(run(small_run(folder.path(), yaml), &benchmarks).steps, (std::vector<int64_t>{4, 5})) << more;
  }
}

TEST(TrainingBenchmarks, ASignalEndsThemAndTheNextRunMakesThemUp) {
  const TemporaryFolder folder;
  LogLines log;
  const std::string yaml = "{max_training_steps: 3, benchmarks: [copa]}";
  FakeBenchmarks interrupted(Does::interrupt), benchmarks;
  const Ended first = run(small_run(folder.path(), yaml), &interrupted);
  EXPECT_EQ(first.outcome.signal, SIGTERM);
  EXPECT_TRUE(first.steps.empty());
  EXPECT_TRUE(std::filesystem::exists(folder / "out/small/run-3"));
  EXPECT_EQ(run(small_run(folder.path(), yaml), &benchmarks).steps, (std::vector<int64_t>{3}));
}

TEST(TrainingBenchmarks, AFailureIsAWarningOrEndsTheRun) {
  const TemporaryFolder folder;
  LogLines log;
  FakeBenchmarks failing(Does::fail);
  const Ended warned = run(small_run(folder.path(), "{" + keys + "}"), &failing);
  EXPECT_EQ(warned.outcome.step, 5);
  EXPECT_EQ(failing.runs, 4);
  EXPECT_TRUE(
      log.has("the benchmarks after step 2 failed, and the run goes on: trainer.benchmarks[0]: the harness is "
              "not well"))
      << log.text;
  const std::string stops =
      "{max_training_steps: 5, benchmarks: [copa], benchmark_interval: 2, benchmark_errors: "
      "stop, model_name: stopped}";
  EXPECT_EQ(test::refusal([&] { run(small_run(folder.path(), stops), &failing); }),
            "trainer.benchmarks[0]: the harness is not well");
  EXPECT_TRUE(std::filesystem::exists(folder / "out/stopped/run-2"));
}

}  // namespace
}  // namespace easydel::train
