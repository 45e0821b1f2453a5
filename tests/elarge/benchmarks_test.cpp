#include "easydel/elarge/benchmarks.h"

#include <gtest/gtest.h>

#include "support/data.h"

namespace easydel::elarge {
namespace {

std::vector<BenchmarkPlan> plans(const std::string& benchmarks, config::Problems& problems,
                                 const std::string& more = "") {
  const Config config = read_config(parse_yaml("model: {name_or_path: here}\neval: {limit: 7, num_fewshot: 2}\n"
                                               "trainer:\n  " +
                                               more + "\n  benchmarks: " + benchmarks + "\n"),
                                    problems);
  problems.throw_if_any();
  return benchmark_plans(config, problems);
}

TEST(BenchmarkPlans, PutTheirKeysOverTheSectionEval) {
  config::Problems problems;
  const auto read =
      plans("[copa, {tasks: [piqa, arc_easy], name: quick, limit: 0.5}, {tasks: hellaswag, num_fewshot: 0}]", problems);
  problems.throw_if_any();
  ASSERT_EQ(read.size(), 3u);
  EXPECT_EQ(read[0].name, "");
  EXPECT_EQ(read[0].plan.action.tasks, (std::vector<std::string>{"copa"}));
  EXPECT_EQ(read[0].plan.settings.limit, 7);
  EXPECT_EQ(read[0].plan.settings.num_fewshot, 2);
  EXPECT_EQ(read[1].name, "quick");
  EXPECT_EQ(read[1].plan.action.tasks, (std::vector<std::string>{"piqa", "arc_easy"}));
  EXPECT_EQ(read[1].plan.settings.limit, 0.5);
  EXPECT_EQ(read[1].plan.where, "trainer.benchmarks[1]");
  EXPECT_EQ(read[2].plan.settings.num_fewshot, 0);
  EXPECT_EQ(read[2].plan.settings.limit, 7);
}

TEST(BenchmarkPlans, SayWhatIsWrong) {
  const auto error = [](const std::string& benchmarks, const std::string& more = "") {
    config::Problems problems("run.yaml");
    plans(benchmarks, problems, more);
    return problems.text();
  };
  const std::string remedy = "    give the name of a task, or a map such as {tasks: [hellaswag], limit: 100}\n",
                    end = "1 problem in run.yaml; nothing was run.";
  EXPECT_EQ(error("[7]"), "run.yaml:5:16: trainer.benchmarks[0]: '7' is not a benchmark\n" + remedy + end);
  EXPECT_EQ(error("[{limit: 3}]"), "run.yaml:5:16: trainer.benchmarks[0]: names no task\n" + remedy + end);
  EXPECT_EQ(error("[{tasks: copa, limt: 3}]"),
            "run.yaml:5:30: trainer.benchmarks[0].limt: no such key\n    did you mean 'limit'?\n" + end);
  EXPECT_EQ(error("[copa, {tasks: copa, limit: 3}]"),
            "run.yaml:5:22: trainer.benchmarks[1]: another benchmark is called 'copa', too\n"
            "    give one of them a name\n" +
                end);
  EXPECT_EQ(
      error("[copa]", "trainer_type: reward"),
      "run.yaml:5:15: trainer.benchmarks: trainer_type reward trains no language model\n    leave them out\n" + end);
}

TEST(BenchmarkMetrics, AreNamedAfterTheBenchmarkAndItsTasks) {
  const Value one = parse_json(R"({"results": {"copa": {"alias": "copa", "sample_len": 3, "acc,none": 0.5,
      "acc_stderr,none": 0.25, "exact_match,strict": 0.125, "f1_stderr,none": "N/A"}}})");
  using Metrics = train::BenchmarkMetrics;
  EXPECT_EQ(benchmark_metrics("", one),
            (Metrics{{"copa/acc", 0.5}, {"copa/acc_stderr", 0.25}, {"copa/exact_match,strict", 0.125}}));
  EXPECT_EQ(benchmark_metrics("quick", one),
            (Metrics{{"quick/acc", 0.5}, {"quick/acc_stderr", 0.25}, {"quick/exact_match,strict", 0.125}}));
  const Value two = parse_json(R"({"results": {"copa": {"acc,none": 0.5}, "piqa": {"acc,none": 0.25}}})");
  EXPECT_EQ(benchmark_metrics("", two), (Metrics{{"copa/acc", 0.5}, {"piqa/acc", 0.25}}));
  EXPECT_EQ(benchmark_metrics("quick", two), (Metrics{{"quick/copa/acc", 0.5}, {"quick/piqa/acc", 0.25}}));
}

}  // namespace
}  // namespace easydel::elarge
