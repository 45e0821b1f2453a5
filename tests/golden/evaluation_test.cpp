// lm-evaluation-harness itself, on the bundled tasks. Skipped where it is not installed (./easydel.sh test --eval).
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "easydel/base/document.h"
#include "easydel/elarge/builder.h"
#include "easydel/elarge/evaluation.h"
#include "golden/harness.h"
#include "support/data.h"

namespace easydel::test {
namespace {

TEST_F(Harness, RunsEveryBundledTask) {
  const Ran ran = evaluate("hellaswag,arc_easy,piqa,copa,openbookqa,winograd,lambada,mmlu,gsm8k,wikitext",
                           {"eval.limit=12", "eval.max_new_tokens=16", "eval.bootstrap_iters=100"});
  ASSERT_EQ(ran.status, 0) << ran.err;
  const Value document = results();
  for (const char* task :
       {"hellaswag", "arc_easy", "piqa", "copa", "openbookqa", "winograd", "lambada", "mmlu", "mmlu_astronomy"})
    EXPECT_TRUE(metric(document, task, "acc") >= 0) << task;
  EXPECT_GT(metric(document, "wikitext", "word_perplexity"), 1);
  EXPECT_EQ(metric(document, "gsm8k", "exact_match"), 0);
  for (const char* key : {"results", "groups", "group_subtasks", "configs", "versions", "n-shot", "higher_is_better",
                          "n-samples", "samples", "config", "task_hashes", "git_hash", "date", "easydel"})
    EXPECT_TRUE(document.find(key)) << key;
  EXPECT_EQ(document.find("config")->find("model_num_parameters")->as_int(), 260032);
  EXPECT_EQ(document.find("samples")->find("copa")->items.size(), 12u);
  EXPECT_NE(ran.out.find("|hellaswag"), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("| - astronomy"), std::string::npos) << ran.out;
}

// metrics.json was recorded with the harness' own back end: tests/data/eval/record_metrics.py.
TEST_F(Harness, GivesTheMetricsOfItsOwnBackEnd) {
  const Ran ran = evaluate("hellaswag,copa,winograd,mmlu,lambada,wikitext,gsm8k",
                           {"eval.limit=20", "eval.max_new_tokens=24", "eval.hard_max_new_tokens=true"});
  ASSERT_EQ(ran.status, 0) << ran.err;
  const Value document = results(), expected = parse_file(test_data("eval/metrics.json"));
  for (const auto& [task, metrics] : expected.entries)
    for (const auto& [name, value] : metrics.entries) {
      const double right = value.as_double().value(), found = metric(document, task.c_str(), name.c_str());
      if (name.find("perplexity") != std::string::npos || name.find("bits") != std::string::npos)
        EXPECT_NEAR(found, right, 1e-4 * right) << task << " " << name;
      else
        EXPECT_EQ(found, right) << task << " " << name;
    }
}

// The evaluation pipeline of the documents' guide, over bundled tasks.
TEST_F(Harness, RunsThePipelineOfTheGuide) {
  write_file(folder_ / "run.yaml", str("model: {name_or_path: ", test_data("models/stories260K-hf").string(), R"(}
loader: {dtype: bf16}
sharding: {axis_dims: [1, 1, 1, -1, 1]}
esurge: {max_model_len: 512, max_num_seqs: 64, hbm_utilization: 0.9, enable_prefix_caching: true}
eval:
  max_new_tokens: 512
  temperature: 0.0
  batch_size: 32
  limit: 8
  bootstrap_iters: 10
  include_defaults: false
  include_path: )",
                                       (source_root() / "examples/tasks").string(), R"(
actions:
  - validate
  - eval:
      tasks: [hellaswag, winograd, arc_easy, gsm8k]
      engine: esurge
      num_fewshot: 0
      output_path: ./eval_results.json
      print_results: true
)"));
  const Ran ran = run_program(
      {"elarge", "run.yaml"},
      {.environment = {{"HF_HUB_OFFLINE", "1"}, {"HF_HOME", (folder_ / "hf").string()}}, .folder = folder_.path()});
  ASSERT_EQ(ran.status, 0) << ran.err;
  const Value document = parse_file(folder_ / "eval_results.json");
  for (const char* task : {"hellaswag", "winograd", "arc_easy"}) {
    EXPECT_FALSE(std::isnan(metric(document, task, "acc"))) << task;
    EXPECT_NE(ran.out.find(str(task, ": 8 documents in ")), std::string::npos) << ran.out;
  }
  EXPECT_EQ(document.find("config")->find("model_dtype")->scalar, "torch.bfloat16");
  EXPECT_EQ(document.find("n-shot")->find("arc_easy")->as_int(), 0);
  EXPECT_NE(ran.err.find("engine: "), std::string::npos) << ran.err;
}

TEST_F(Harness, EvaluatesFromAProgramAsTheGuideShows) {
  const std::string home = (folder_ / "hf").string();
  ASSERT_EQ(setenv("HF_HUB_OFFLINE", "1", 1) | setenv("HF_HOME", home.c_str(), 1), 0);
  elarge::Builder built = elarge::Builder::from_pretrained(test_data("models/stories260K-hf").string());
  built.set_eval({{"include_path", (source_root() / "examples/tasks").string()},
                  {"include_defaults", false},
                  {"limit", 3},
                  {"max_new_tokens", 8},
                  {"hard_max_new_tokens", true},
                  {"bootstrap_iters", 0}});
  const Value results = built.eval({{"tasks", {"hellaswag", "mmlu", "gsm8k"}},
                                    {"engine", "esurge"},
                                    {"num_fewshot", 5},
                                    {"output_path", (folder_ / "eval_results.json").string()}});
  std::vector<std::string> with_accuracy;
  for (const auto& [task, metrics] : results.find("results")->entries)
    if (elarge::metric_of(results, task, "acc")) with_accuracy.push_back(task);
  std::ranges::sort(with_accuracy);
  EXPECT_EQ(with_accuracy, (std::vector<std::string>{"hellaswag", "mmlu", "mmlu_astronomy",
                                                     "mmlu_high_school_geography", "mmlu_marketing"}));
  EXPECT_TRUE(elarge::metric_of(results, "gsm8k", "exact_match"));
  EXPECT_EQ(to_json(*parse_file(folder_ / "eval_results.json").find("results")), to_json(*results.find("results")));
}

TEST_F(Harness, RefusesTasksBeforeTheModelIsLoaded) {
  const auto error = [&](const char* tasks, std::vector<std::string> settings = {}) {
    const Ran ran = evaluate(tasks, std::move(settings));
    EXPECT_EQ(ran.status, 2);
    return ran.err.substr(ran.err.find("actions[0].eval"));
  };
  EXPECT_EQ(error("helaswag"), "actions[0].eval: there is no task 'helaswag'\n    did you mean 'hellaswag'?\n");
  EXPECT_EQ(error("mmlu", {"eval.num_fewshot=6"}),
            "actions[0].eval: task 'mmlu_astronomy' has 5 documents to show as examples, and num_fewshot is 6\n    "
            "lower num_fewshot\n");
  EXPECT_EQ(error("copa", {"eval.samples={piqa: [1]}"}),
            "actions[0].eval: samples names 'piqa', which is not among the tasks\n");
}

TEST_F(Harness, FindsBrokenAndMissingTasksOfAFolder) {
  write_file(folder_ / "tasks/broken.yaml", "task: broken\ndataset_path: [json\ntest_split: test\n");
  const auto error = [&](const char* tasks) {
    const Ran ran =
        run_program({"eval", test_data("models/stories260K-hf").string(), "--tasks", tasks, "--set",
                     "eval.include_defaults=false", "--set", "eval.include_path=" + (folder_ / "tasks").string()},
                    {.environment = {{"HF_HUB_OFFLINE", "1"}, {"HF_HOME", (folder_ / "hf").string()}}});
    return replaced(ran.err.substr(std::min(ran.err.size(), ran.err.find("actions[0].eval"))), folder_.path().string(),
                    "DIR");
  };
  EXPECT_TRUE(error("broken").starts_with("actions[0].eval: DIR/tasks/broken.yaml:3: ")) << error("broken");
  const std::string task =
      "dataset_path: nobody/nothing\ntest_split: test\noutput_type: multiple_choice\ndoc_to_text: q\ndoc_to_choice: "
      "c\ndoc_to_target: g\n";
  write_file(folder_ / "tasks/broken.yaml", "task: one\n" + task);
  write_file(folder_ / "tasks/two.yaml", "task: two\n" + task);
  const std::string said = error("one,two");
  EXPECT_TRUE(
      said.starts_with("actions[0].eval: data that tasks need cannot be loaded: nobody/nothing (for one, two): "))
      << said;
  EXPECT_NE(said.find("looked in DIR/hf/datasets"), std::string::npos) << said;
}

TEST_F(Harness, AsksForConsentToRunCode) {
  write_file(folder_ / "tasks/code.yaml",
             "task: code\nunsafe_code: true\ndataset_path: json\ndataset_kwargs: {data_files: {test: "
             "d.jsonl}}\ntest_split: test\n"
             "output_type: generate_until\ndoc_to_text: \"{{q}}\"\ndoc_to_target: \"{{q}}\"\nmetric_list: [{metric: "
             "exact_match}]\n");
  write_file(folder_ / "tasks/d.jsonl", "{\"q\": \"Tom\"}\n");
  const auto run = [&](const char* consent) {
    return run_program(
        {"eval", test_data("models/stories260K-hf").string(), "--tasks", "code", "--set", "eval.include_defaults=false",
         "--set", "eval.include_path=" + (folder_ / "tasks").string(), "--set",
         std::string("eval.confirm_run_unsafe_code=") + consent, "--set", "eval.max_new_tokens=4"},
        {.environment = {{"HF_HUB_OFFLINE", "1"}, {"HF_HOME", (folder_ / "hf").string()}}});
  };
  EXPECT_NE(
      run("false").err.find("task 'code' runs code that the model writes\n    set eval.confirm_run_unsafe_code: true"),
      std::string::npos);
  EXPECT_EQ(run("true").status, 0);
}

TEST_F(Harness, HasTheModelEasydelForItsOwnPrograms) {
  const std::string script = R"(
import easydel_harness
from lm_eval import simple_evaluate
from lm_eval.tasks import TaskManager
manager = TaskManager(include_path="examples/tasks", include_defaults=False)
results = simple_evaluate(model="easydel", model_args="pretrained=)" +
                             test_data("models/stories260K-hf").string() + R"(,dtype=fp32", tasks=["copa", "gsm8k"],
                          task_manager=manager, limit=5, bootstrap_iters=0, gen_kwargs={"max_gen_toks": 8})
print(results["results"]["copa"]["acc,none"], results["config"]["model_num_parameters"])
)";
  const Ran ran = run({elarge::find_harness("test").program.string(), "-c", script},
                      {.environment = {{"HF_HUB_OFFLINE", "1"},
                                       {"HF_HOME", (folder_ / "hf").string()},
                                       {"EASYDEL_PROGRAM", program().string()},
                                       {"PYTHONPATH", (source_root() / "python").string()}},
                       .folder = source_root()});
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_TRUE(ran.out.ends_with(" 260032\n")) << ran.out;
}

}  // namespace
}  // namespace easydel::test
