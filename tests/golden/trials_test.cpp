// Small versions of the campaigns in scripts/trials.
#include <gtest/gtest.h>

#include "easydel/base/error.h"
#include "support/data.h"

namespace easydel::test {
namespace {

class Trials : public testing::TestWithParam<const char*> {};

TEST_P(Trials, LoseNothing) {
  const Ran ran = run({"python3", (source_root() / "scripts/trials" / GetParam()).string(), "--count", "20",
                       "--program", program().string()});
  EXPECT_EQ(ran.status, 0) << ran.out << ran.err;
  EXPECT_NE(ran.out.find("; nothing was lost\n"), std::string::npos) << ran.out << ran.err;
}

TEST(AdapterTrials, LoseNothing) {
  const Ran ran = run({"python3", (source_root() / "scripts/trials/kills.py").string(), "--count", "10", "--lora",
                       "{r: 4, dropout: 0.1, use_dora: true}", "--program", program().string()});
  EXPECT_EQ(ran.status, 0) << ran.out << ran.err;
  EXPECT_NE(ran.out.find("; nothing was lost\n"), std::string::npos) << ran.out << ran.err;
}

// Kills of an evaluation and of the harness' process, for which tests/support/harness/fake_lm_eval stands.
TEST(EvaluationTrials, LoseNothing) {
  const TemporaryFolder folder;
  std::string requests;
  for (int i = 0; i < 40; ++i)
    requests += str(i == 0 ? "" : ", ", R"({"kind": "generate_until", "arguments": ["One day, )", i,
                    R"( dogs", {"until": [], "max_gen_toks": 40}]})");
  std::string tasks;
  for (const char* name : {"copa", "wikitext", "gsm8k", "mmlu"})
    tasks += str(tasks.empty() ? "{" : ", ", '"', name, R"(": {"requests": [)", requests, "]}");
  write_file(folder / "tasks.json", tasks + "}");
  const Ran ran = run({"python3", (source_root() / "scripts/trials/evaluation_kills.py").string(), "--count", "8"},
                      {.environment = {{"EASYDEL_PROGRAM", program().string()},
                                       {"EASYDEL_PYTHON", "python3"},
                                       {"PYTHONDONTWRITEBYTECODE", "1"},
                                       {"PYTHONPATH", (source_root() / "tests/support/harness/fake_lm_eval").string()},
                                       {"FAKE_TASKS", (folder / "tasks.json").string()}}});
  EXPECT_EQ(ran.status, 0) << ran.out << ran.err;
  EXPECT_TRUE(ran.out.starts_with("8 kills: nothing was left or lost; ")) << ran.out << ran.err;
}

INSTANTIATE_TEST_SUITE_P(All, Trials, testing::Values("kills.py", "corruption.py", "disk_faults.py", "two_runs.py"),
                         [](const auto& info) {
                           return std::string(info.param, std::string_view(info.param).find('.'));
                         });

}  // namespace
}  // namespace easydel::test
