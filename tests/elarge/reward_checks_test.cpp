#include "easydel/elarge/reward_checks.h"

#include <gtest/gtest.h>

#include "support/data.h"

namespace easydel::elarge {
namespace {

// The problems of a run with these keys of the trainer, a line each.
std::string problems_of(const std::string& trainer, const std::string& more = "") {
  config::Problems problems("run.yaml");
  const Config config =
      read_config(parse_yaml("model: {name_or_path: m}\ntrainer: {" + trainer + "}\n" + more), problems);
  check_rewards(config, problems);
  std::string out;
  for (const config::Problem& problem : problems.sorted()) out += problem.path + ": " + problem.what + "\n";
  return out;
}

constexpr const char* missing = "trainer.rewards: is missing, so no completion is worth more than another\n";

TEST(RewardChecks, ARunThatSamplesNeedsAReward) {
  for (const char* method : {"grpo", "rloo", "ppo", "online_dpo", "agentic_moshpit"})
    EXPECT_EQ(problems_of(str("trainer_type: ", method)), missing) << method;
  EXPECT_EQ(problems_of("trainer_type: grpo, rewards: [{type: answer}]"), "");
  EXPECT_EQ(problems_of("trainer_type: grpo", "reward_model: {name_or_path: judge}\n"), "");
  EXPECT_EQ(problems_of("trainer_type: sft"), "");
  EXPECT_EQ(problems_of("trainer_type: rlvr, answer_key: answer"), "");
  EXPECT_EQ(problems_of("trainer_type: agentic_moshpit, environment: {type: program, command: [x]}"), "");
}

TEST(RewardChecks, ProgramsAreFoundOrRefused) {
  const auto with = [](const std::string& command) {
    return problems_of("trainer_type: grpo, rewards: [{type: answer}, {type: program, command: [" + command + "]}]");
  };
  EXPECT_EQ(with("sh, -c, 'cat'"), "");
  EXPECT_EQ(with("/bin/sh"), "");
  EXPECT_EQ(with("no_such_program"),
            "trainer.rewards[1].command: 'no_such_program' is not a program that can be started\n");
  const test::TemporaryFolder folder;
  test::write_file(folder / "plain.txt", "text");
  const std::string file = (folder / "plain.txt").string();
  EXPECT_EQ(with(file), "trainer.rewards[1].command: '" + file + "' is not a program that can be started\n");
}

TEST(RewardChecks, ModelsAreFoundOrRefused) {
  const auto with = [](const std::string& keys, const std::string& more = "") {
    return problems_of("trainer_type: grpo, rewards: [{type: model" + keys + "}]", more);
  };
  EXPECT_EQ(with(", model: '" + test::test_data("models/stories260K-hf").string() + "'"), "");
  EXPECT_EQ(with(""), "trainer.rewards[0]: names no model, and there is no section reward_model\n");
  EXPECT_EQ(with("", "reward_model: {name_or_path: judge}\n"), "");
  const test::TemporaryFolder folder;
  EXPECT_EQ(with(", model: '" + folder.path().string() + "'"),
            "trainer.rewards[0].model: '" + folder.path().string() + "' has no config.json\n");
  EXPECT_NE(with(", model: ./no/such/folder").find("trainer.rewards[0].model: "), std::string::npos);
}

}  // namespace
}  // namespace easydel::elarge
