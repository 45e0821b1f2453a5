// Each key of the section eval that only the harness reads does something; several ranks. Skipped
// where the harness is not installed (./easydel.sh test --eval).
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "golden/harness.h"

namespace easydel::test {
namespace {

TEST_F(Harness, PrintsRequestsAndKeepsMetadata) {
  const std::vector<std::string> quiet = {"eval.limit=3", "eval.bootstrap_iters=0"};
  std::vector<std::string> loud = quiet;
  loud.insert(loud.end(), {"eval.write_out=true", "eval.metadata={who: me}", "eval.num_fewshot=2",
                           "eval.check_integrity=true", "eval.samples={copa: [1, 4]}", "eval.limit=null"});
  const Ran ran = evaluate("copa", loud);
  ASSERT_EQ(ran.status, 0) << ran.err;
  EXPECT_NE(ran.err.find("document 0; context prompt"), std::string::npos) << ran.err;
  const Value document = results();
  EXPECT_EQ(document.find("configs")->find("copa")->find("metadata")->find("who")->scalar, "me");
  EXPECT_EQ(document.find("n-shot")->find("copa")->as_int(), 2);
  std::vector<int64_t> ids;
  for (const Value& sample : document.find("samples")->find("copa")->items)
    ids.push_back(*sample.find("doc_id")->as_int());
  std::ranges::sort(ids);
  EXPECT_EQ(ids, (std::vector<int64_t>{1, 4}));
  const std::string prompts = document.find("task_hashes")->find("copa")->scalar;

  loud.push_back("eval.fewshot_random_seed=7");
  loud.push_back("eval.write_out=false");
  const Ran other = evaluate("copa", loud);
  EXPECT_EQ(other.err.find("context prompt"), std::string::npos);
  EXPECT_NE(results().find("task_hashes")->find("copa")->scalar, prompts) << "other examples are shown";
  loud.push_back("eval.verbosity=DEBUG");
  EXPECT_GT(evaluate("copa", loud).err.size(), other.err.size());
}

TEST_F(Harness, OnlyGeneratesWhereItIsToldTo) {
  const Ran ran = evaluate("gsm8k", {"eval.limit=2", "eval.predict_only=true", "eval.max_new_tokens=4",
                                     "eval.num_fewshot=0", "eval.hard_max_new_tokens=true"});
  ASSERT_EQ(ran.status, 0) << ran.err;
  const Value document = results();
  EXPECT_TRUE(std::isnan(metric(document, "gsm8k", "exact_match")));
  EXPECT_FALSE(std::isnan(metric(document, "gsm8k", "bypass")));
  EXPECT_FALSE(document.find("samples")->find("gsm8k")->items.empty());
}

TEST_F(Harness, KeepsTheRequestsOfTasksAndMakesThemAnew) {
  const std::filesystem::path cache = folder_ / "requests";
  const auto files = [&] {
    std::vector<std::pair<std::string, std::filesystem::file_time_type>> out;
    if (std::filesystem::exists(cache))
      for (const auto& file : std::filesystem::directory_iterator(cache))
        out.emplace_back(file.path().filename().string(), file.last_write_time());
    return out;
  };
  const auto run = [&](std::vector<std::string> settings) {
    settings.insert(settings.end(), {"eval.limit=2", "eval.log_samples=false"});
    const Ran ran = evaluate("copa", settings, {{"LM_HARNESS_CACHE_PATH", cache.string()}});
    EXPECT_EQ(ran.status, 0) << ran.err;
    EXPECT_FALSE(results().find("samples"));
    return files();
  };
  const auto first = run({"eval.cache_requests=true"});
  ASSERT_EQ(first.size(), 1u);
  EXPECT_TRUE(first[0].first.starts_with("requests-copa-")) << first[0].first;
  EXPECT_EQ(run({"eval.cache_requests=true"}), first);
  EXPECT_NE(run({"eval.cache_requests=true", "eval.rewrite_requests_cache=true"})[0].second, first[0].second);
  EXPECT_TRUE(run({"eval.delete_requests_cache=true"}).empty());
}

TEST_F(Harness, FindsDocumentsThatCannotBeScored) {
  write_file(folder_ / "tasks/odd.yaml",
             "task: odd\ndataset_path: json\ndataset_kwargs: {data_files: {test: odd.jsonl}}\ntest_split: test\n"
             "output_type: multiple_choice\ndoc_to_text: q\ndoc_to_choice: c\ndoc_to_target: g\n");
  write_file(folder_ / "tasks/odd.jsonl",
             "{\"q\": \"a\", \"c\": [\"b\", \"c\"], \"g\": 1}\n{\"q\": \"a\", \"c\": [\"b\", \"c\"], \"g\": 2}\n");
  const Ran ran = run_program(
      {"eval", test_data("models/stories260K-hf").string(), "--tasks", "odd", "--set", "eval.include_defaults=false",
       "--set", "eval.include_path=" + (folder_ / "tasks").string(), "--set", "eval.check_integrity=true"},
      {.environment = {{"HF_HUB_OFFLINE", "1"}, {"HF_HOME", (folder_ / "hf").string()}}});
  EXPECT_TRUE(
      ran.err.ends_with("actions[0].eval: task 'odd', document 1: its target is choice 2 of 2\n    correct the "
                        "task or its data\n"))
      << ran.err;
}

TEST_F(Harness, GivesTheSameOnSeveralRanks) {
  const std::vector<std::string> settings = {"eval.limit=6", "eval.max_new_tokens=8", "eval.num_fewshot=0",
                                             "eval.hard_max_new_tokens=true", "eval.bootstrap_iters=0"};
  ASSERT_EQ(evaluate("copa,gsm8k,wikitext", settings).status, 0);
  const Value alone = results();
  std::string yaml =
      str("model: {name_or_path: ", test_data("models/stories260K-hf").string(),
          "}\nloader: {dtype: fp32, param_dtype: fp32}\nsharding: {axis_dims: [1, 1, 1, 2, 1]}\neval: {include_path: "
          "examples/tasks, "
          "include_defaults: false, limit: 6, max_new_tokens: 8, num_fewshot: 0, hard_max_new_tokens: "
          "true, bootstrap_iters: 0}\nactions:\n  - eval: {tasks: [copa, gsm8k, wikitext], output_path: ",
          (folder_ / "r.json").string(), "}\n");
  write_file(folder_ / "run.yaml", yaml);
  const Ran ran = run_program({"--nproc", "2", "elarge", (folder_ / "run.yaml").string()},
                              {.environment = {{"HF_HUB_OFFLINE", "1"},
                                               {"HF_HOME", (folder_ / "hf").string()},
                                               {"OMP_NUM_THREADS", "1"},
                                               {"OMP_WAIT_POLICY", "PASSIVE"}},
                               .folder = source_root()});
  ASSERT_EQ(ran.status, 0) << ran.err;
  const Value both = results();
  for (const char* task : {"copa", "gsm8k", "wikitext"}) {
    const auto &a = alone.find("samples")->find(task)->items, &b = both.find("samples")->find(task)->items;
    ASSERT_EQ(a.size(), b.size());
    if (std::string(task) != "gsm8k") continue;
    for (size_t i = 0; i < a.size(); ++i) EXPECT_EQ(to_json(*a[i].find("resps")), to_json(*b[i].find("resps")));
  }
  EXPECT_EQ(metric(both, "copa", "acc"), metric(alone, "copa", "acc"));
  EXPECT_NEAR(metric(both, "wikitext", "byte_perplexity"), metric(alone, "wikitext", "byte_perplexity"), 1e-5);
}

}  // namespace
}  // namespace easydel::test
