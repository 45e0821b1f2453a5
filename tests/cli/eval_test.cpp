// The action eval and `easydel eval`: what goes to the harness' process, what comes back, and what is refused. The
// process is tests/support/harness/fake_python.py; tests/golden/evaluation_test.cpp runs the real one.
#include <gtest/gtest.h>

#include <algorithm>

#include "easydel/base/document.h"
#include "support/data.h"

namespace easydel {
namespace {

using test::Ran;
using Environment = std::vector<std::pair<std::string, std::string>>;

const std::string& story() {
  static const std::string folder = test::test_data("models/stories260K-hf").string();
  return folder;
}

Environment fake(Environment more = {}) {
  more.emplace_back("EASYDEL_PYTHON", (test::source_root() / "tests/support/harness/fake_python.py").string());
  return more;
}

Ran evaluate(std::vector<std::string> more, const Environment& environment = fake()) {
  std::vector<std::string> arguments{"eval", story(), "--tasks", "hellaswag,piqa"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return test::run_program(arguments, {.environment = environment});
}

TEST(Eval, WritesTheHarnessDocumentWithWhatTheModelIs) {
  const test::TemporaryFolder folder;
  const std::string file = (folder / "results.json").string();
  const Ran ran = evaluate({"-o", file, "--num-fewshot", "3", "--set", "eval.limit=0.5", "--set", "eval.batch_size=2",
                            "--set", "eval.enable_thinking=false", "--set", "eval.gen_kwargs.top_k=5"});
  ASSERT_EQ(ran.status, 0) << ran.err;
  EXPECT_EQ(ran.out, "|Tasks|\n|-----|\n");
  const Value document = parse_file(file);
  EXPECT_EQ(to_json(document.find("results")->find("hellaswag")->entries[1].second), "1.0");
  const Value& settings = *document.find("settings");
  EXPECT_EQ(to_json(*settings.find("tasks")), R"(["hellaswag", "piqa"])");
  EXPECT_EQ(settings.find("evaluate")->find("num_fewshot")->as_int(), 3);
  EXPECT_EQ(settings.find("evaluate")->find("limit")->as_double(), 0.5);
  EXPECT_EQ(to_json(*settings.find("evaluate")->find("gen_kwargs")), R"({"top_k": 5})");
  EXPECT_EQ(settings.find("batch_size")->as_int(), 2);
  EXPECT_EQ(settings.find("model")->find("enable_thinking")->as_bool(), false);
  for (const char* key : {"version", "weights_digest", "tokenizer_digest", "order", "isa", "lm_eval"})
    EXPECT_TRUE(document.find("easydel")->find(key)) << key;
  const Value& answers = *document.find("answers");
  EXPECT_TRUE(answers.items[0].find("logprob")->as_double() > answers.items[1].find("logprob")->as_double());
  EXPECT_EQ(answers.items[3].find("tokens")->items.size(), 8u);
  EXPECT_NE(ran.err.find("the fake harness begins"), std::string::npos);
}

TEST(Eval, WritesAFolderAsTheHarnessDoes) {
  const test::TemporaryFolder folder;
  ASSERT_EQ(evaluate({"-o", (folder / "results").string()}).status, 0);
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder / "results"))
    if (entry.is_regular_file()) names.push_back(entry.path().filename().string());
  std::ranges::sort(names);
  ASSERT_EQ(names.size(), 2u);
  EXPECT_TRUE(names[0].starts_with("results_20") && names[0].ends_with(".json")) << names[0];
  EXPECT_TRUE(names[1].starts_with("samples_hellaswag_20") && names[1].ends_with(".jsonl")) << names[1];
}

TEST(Eval, AnswersFromTheFileOfAnEarlierRunButNotOfAnotherModel) {
  const test::TemporaryFolder folder;
  const std::string cache = "eval.use_cache=" + (folder / "answers").string(), file = (folder / "r.json").string();
  const Ran first = evaluate({"--set", cache, "-o", file});
  ASSERT_EQ(first.status, 0) << first.err;
  const std::string stored = test::read_file(folder / "answers"), expected = to_json(*parse_file(file).find("answers"));
  EXPECT_EQ(std::ranges::count(stored, '\n'), 4);
  const Ran second = evaluate({"--set", cache, "-o", file});
  EXPECT_NE(second.err.find("4 requests"), std::string::npos) << second.err;
  EXPECT_NE(second.err.find("4 of them from"), std::string::npos) << second.err;
  EXPECT_EQ(to_json(*parse_file(file).find("answers")), expected);
  EXPECT_EQ(test::read_file(folder / "answers"), stored);
  const Ran other = evaluate({"--set", cache, "--dtype", "bf16"});
  EXPECT_EQ(other.err.find("of them from"), std::string::npos) << other.err;
  test::write_file(folder / "answers", "something else\n");
  EXPECT_NE(evaluate({"--set", cache}).err.find("is not a file of answers\n    name another file"), std::string::npos);
}

TEST(Eval, ComparesTwoResults) {
  const test::TemporaryFolder folder;
  const auto write = [&](const char* name, const char* acc, int first, int second) {
    test::write_file(
        folder / name,
        str(R"({"results": {"copa": {"alias": "copa", "acc,none": )", acc,
            R"(, "acc_stderr,none": 0.03}}, "samples": {"copa": [{"doc_id": 4, "filter": "none", "metrics": ["acc"], "acc": )",
            first, R"(}, {"doc_id": 7, "filter": "none", "metrics": ["acc"], "acc": )", second, "}]}}"));
    return (folder / name).string();
  };
  const std::string a = write("a.json", "0.5", 0, 1), b = write("b.json", "0.625", 1, 1);
  const Ran ran = test::run_program({"eval", "--compare", a, b});
  EXPECT_EQ(ran.status, 1);
  EXPECT_NE(ran.out.find("copa  acc,none  0.5000  0.6250  +0.1250     0.0424"), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("copa acc, 0 to 1: 4\n"), std::string::npos) << ran.out;
  EXPECT_EQ(test::run_program({"eval", "--compare", a, b, "--tolerance", "0.125"}).status, 0);
  EXPECT_EQ(test::run_program({"eval", "--compare", a, a}).status, 0);
  test::write_file(folder / "c.json", "{}");
  EXPECT_EQ(test::run_program({"eval", "--compare", a, (folder / "c.json").string()}).err,
            (folder / "c.json").string() +
                ": has no results of an evaluation\n    give the JSON file that eval's output_path named\n");
}

TEST(Eval, SaysWhatItNeedsBeforeTheModelIsLoaded) {
  const std::string python = (test::source_root() / "tests/support/harness/fake_python.py").string();
  EXPECT_EQ(evaluate({}, {{"EASYDEL_PYTHON", "/nowhere/python"}}).err,
            "actions[0].eval: no Python was found to run lm-evaluation-harness with\n"
            "    install Python 3.10 or newer and 'pip install lm_eval==0.4.13', or set EASYDEL_PYTHON\n");
  EXPECT_EQ(evaluate({}, fake({{"FAKE_VERSION", "none"}})).err,
            "actions[0].eval: " + python + " has no lm-evaluation-harness\n    install it: '" + python +
                " -m pip install lm_eval==0.4.13'; or set EASYDEL_PYTHON\n");
  EXPECT_EQ(evaluate({}, fake({{"FAKE_VERSION", "0.4.9.1"}})).err,
            "actions[0].eval: lm-evaluation-harness 0.4.9.1 of " + python +
                " is too old\n    at least 0.4.13 is needed: '" + python + " -m pip install lm_eval==0.4.13'\n");
  const Ran refused = evaluate({}, fake({{"FAKE_MODE", "refuses"}}));
  EXPECT_EQ(refused.status, 2);
  EXPECT_TRUE(refused.err.ends_with("actions[0].eval: there is no task 'helaswag'\n    did you mean 'hellaswag'?\n"))
      << refused.err;
}

TEST(Eval, RefusesKeysThatDoNotFit) {
  const auto error = [](std::vector<std::string> more) { return evaluate(std::move(more)).err; };
  const std::string end = "\n1 problem in command line; nothing was run.\n";
  EXPECT_EQ(error({"--set", "eval.limit=3", "--set", "eval.samples={copa: [1]}"}),
            "--set eval.samples={copa: [1]}: eval.samples: limit and samples cannot be given together\n    give one of "
            "them" +
                end);
  EXPECT_EQ(
      error({"--set", "eval.enable_thinking=true"}),
      "command line: eval.think_end_token: enable_thinking needs the token that ends the reasoning\n    for example "
      "'</think>'" +
          end);
  EXPECT_EQ(
      error({"--set", "eval.apply_chat_template=true"}),
      "--set eval.apply_chat_template=true: eval.apply_chat_template: the tokenizer has no chat template\n    give "
      "model.chat_template, or leave it out" +
          end);
  EXPECT_TRUE(error({"-o", "/proc/nothing/r.json"}).starts_with("command line: actions[0].eval.output_path: "));
  EXPECT_EQ(test::run_program({"eval", story()}).err,
            "easydel eval: no task given\n    name some: --tasks hellaswag,arc_easy\n");
}

TEST(Eval, LeavesNoProcessBehindWhenItIsKilled) {
  const test::TemporaryFolder folder;
  const std::string script = R"("$0" eval "$1" --tasks copa -o "$2/r.json" 2>/dev/null & run=$!
until [ -s "$2/pid" ]; do kill -0 $run 2>/dev/null || exit 9; sleep 0.05; done
kill -KILL $run; wait $run 2>/dev/null
child=$(cat "$2/pid")
gone() { ! kill -0 $child || grep -q "State:.Z" /proc/$child/status; }
for i in $(seq 200); do gone 2>/dev/null && exit 0; sleep 0.05; done; exit 8)";
  const test::Ran ran =
      test::run({"bash", "-c", script, test::program().string(), story(), folder.path().string()},
                {.environment = fake({{"FAKE_MODE", "sleeps"}, {"FAKE_PID", (folder / "pid").string()}})});
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_FALSE(std::filesystem::exists(folder / "r.json"));
}

TEST(Eval, WritesFinishedTasksBeforeTheLast) {
  const test::TemporaryFolder folder;
  const std::string file = (folder / "r.json").string();
  EXPECT_EQ(evaluate({"-o", file}, fake({{"FAKE_MODE", "dies late"}})).status, 2);
  const Value document = parse_file(file);
  EXPECT_TRUE(document.find("results")->find("hellaswag"));
  EXPECT_EQ(to_json(*document.find("easydel")->find("unfinished")), R"(["piqa"])");
  EXPECT_EQ(evaluate({"-o", file}).status, 0);
  EXPECT_FALSE(parse_file(file).find("easydel")->find("unfinished"));
}

// A run of three steps with benchmarks at the second and the last.
std::string training_run(const test::TemporaryFolder& folder, const std::string& more = "") {
  std::string lines;
  for (int i = 0; i < 6; ++i) lines += str("Once upon a time there was a dog who had ", i, " red balls.\n");
  test::write_file(folder / "lines.txt", lines);
  const std::string file = (folder / "run.yaml").string();
  test::write_file(
      file,
      str("model: {name_or_path: ", story(), "}\nmixture: {informs: [{data_files: ", (folder / "lines.txt").string(),
          "}]}\ntrainer: {max_training_steps: 3, total_batch_size: 2, "
          "save_directory: ",
          (folder / "out").string(), ", model_name: a, benchmark_interval: 2, ",
          "benchmarks: [copa, {tasks: piqa, name: quick, limit: 3}]", more, "}\nactions: [train]\n"));
  return file;
}

size_t count(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(Eval, RunsWhileTheModelIsTrained) {
  const test::TemporaryFolder folder;
  const Ran ran = test::run_program({"elarge", training_run(folder)}, {.environment = fake()});
  ASSERT_EQ(ran.status, 0) << ran.err;
  EXPECT_EQ(count(ran.err, "the fake harness begins"), 1u) << "the process stays";
  EXPECT_EQ(count(ran.err, "benchmarks after step"), 2u);
  const std::string metrics = test::read_file(folder / "out/a/metrics.jsonl");
  EXPECT_EQ(count(metrics, R"("eval/copa/acc": )"), 2u) << metrics;
  EXPECT_EQ(count(metrics, R"("eval/quick/acc": )"), 2u) << metrics;
}

TEST(Eval, ABenchmarkThatFailsIsAWarningAndTheNextOneStartsTheHarnessAgain) {
  const test::TemporaryFolder folder;
  const Ran ran = test::run_program({"elarge", training_run(folder)}, {.environment = fake({{"FAKE_MODE", "dies"}})});
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_EQ(count(ran.err, "and the run goes on: trainer.benchmarks[0]: the harness' process ended with status 7"), 2u)
      << ran.err;
  EXPECT_EQ(count(ran.err, "the fake harness begins"), 2u) << "it is started when it is needed";
  const Ran stopped =
      test::run_program({"elarge", training_run(folder, ", benchmark_errors: stop, resume_if_possible: false")},
                        {.environment = fake({{"FAKE_MODE", "dies"}})});
  EXPECT_EQ(stopped.status, 2);
  EXPECT_TRUE(
      stopped.err.ends_with("trainer.benchmarks[0]: the harness' process ended with status 7\n"
                            "    it said last: Traceback: out of luck\n"))
      << stopped.err;
}

TEST(Eval, BenchmarksAreCheckedBeforeAnythingIsComputed) {
  const test::TemporaryFolder folder;
  const std::string file = training_run(folder);
  EXPECT_TRUE(test::run_program({"elarge", file}, {.environment = {{"EASYDEL_PYTHON", "/nowhere/python"}}})
                  .err.ends_with("trainer.benchmarks: no Python was found to run lm-evaluation-harness with\n"
                                 "    install Python 3.10 or newer and 'pip install lm_eval==0.4.13', or set "
                                 "EASYDEL_PYTHON\n"));
  EXPECT_TRUE(
      test::run_program({"elarge", file}, {.environment = fake({{"FAKE_MODE", "refuses"}})})
          .err.ends_with("trainer.benchmarks[0]: there is no task 'helaswag'\n    did you mean 'hellaswag'?\n"));
  EXPECT_FALSE(std::filesystem::exists(folder / "out/a"));
  EXPECT_EQ(
      test::run_program({"elarge", file, "--set", "trainer.benchmarks=[{tasks: copa, include_path: /nowhere}]"},
                        {.environment = fake()})
          .err,
      "--set trainer.benchmarks=[{tasks: copa, include_path: /nowhere}]: trainer.benchmarks[0].include_path: there "
      "is no folder '/nowhere'\n    give the folder with the tasks' YAML files\n1 problem in " +
          file + "; nothing was run.\n");
}

TEST(Eval, SurvivesAHarnessThatDies) {
  const test::TemporaryFolder folder;
  const std::string file = (folder / "r.json").string();
  const auto ended = [&](const char* mode) {
    const Ran ran = evaluate({"-o", file}, fake({{"FAKE_MODE", mode}}));
    EXPECT_EQ(ran.status, 2) << ran.err;
    EXPECT_FALSE(std::filesystem::exists(file));
    return ran.err;
  };
  EXPECT_TRUE(
      ended("dies").ends_with("actions[0].eval: the harness' process ended with status 7\n"
                              "    it said last: Traceback: out of luck\n"));
  EXPECT_NE(ended("killed").find("the harness' process ended by signal 9"), std::string::npos);
  EXPECT_NE(ended("garbage").find("the harness' message"), std::string::npos);
}

}  // namespace
}  // namespace easydel
