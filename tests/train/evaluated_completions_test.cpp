// Methods that sample are evaluated by completions of held-out prompts.
#include <gtest/gtest.h>

#include <cmath>

#include "easydel/base/files.h"
#include "support/ranks.h"
#include "train/small_run.h"

namespace easydel::train {
namespace {

namespace fs = std::filesystem;

void run(const fs::path& folder, const std::string& name, const std::string& keys,
         std::shared_ptr<const collective::Team> team = nullptr) {
  const test::LogLines log;
  for (const auto& [file, prompts] :
       {std::pair{"prompts.jsonl", std::vector<std::string>{"Once upon a time", "One day", "The cat", "Tom and"}},
        {"held_out.jsonl", {"A dog", "Mom said", "Lily saw", "The big", "One big"}}}) {
    std::string lines;
    for (const std::string& prompt : prompts) lines += str("{\"prompt\": \"", prompt, "\"}\n");
    if (!fs::exists(folder / file)) test::write_file(folder / file, lines);
  }
  Value trainer = parse_yaml(
      "{trainer_type: grpo, total_batch_size: 8, num_return_sequences: 4, max_completion_length: 10, temperature: 1.0, "
      "max_training_steps: 4, rewards: [{type: contains, words: [a, the, he]}], shuffle_train_dataset: false}");
  test::put(trainer, "{" + keys + ", model_name: " + name + "}");
  TrainerParts parts =
      test::small_run(folder, to_json(trainer),
                      str("{informs: [{data_files: \"", (folder / "prompts.jsonl").string(),
                          "\"}], evaluation: [{data_files: \"", (folder / "held_out.jsonl").string(), "\"}]}"));
  if (team) {
    parts.load.team = std::move(team);
    parts.model = models::load_model(test::test_data("models/stories260K-hf"), parts.load);
  }
  Trainer(std::move(parts)).run();
}

std::vector<double> metric(const fs::path& folder, const std::string& run, const std::string& name) {
  return test::metric(folder / "out" / run, name);
}

TEST(EvaluatedCompletions, TellTheRewardsOfHeldOutPrompts) {
  const test::TemporaryFolder folder;
  const std::string evaluates =
      ", evaluation_steps: 2, eval_on_start: true, num_generations_eval: 3, eval_batch_size: 6";
  run(folder.path(), "alone", "learning_rate: 1e-3");
  run(folder.path(), "evaluated", "learning_rate: 1e-3" + evaluates);
  for (const char* name : {"loss", "grad_norm", "reward"})
    EXPECT_EQ(metric(folder.path(), "evaluated", name), metric(folder.path(), "alone", name)) << name;
  const auto read = [&](const char* run) { return files::read(folder.path() / "out" / run / "rollouts.jsonl"); };
  EXPECT_EQ(read("evaluated"), read("alone")) << "evaluations are not recorded";
  const auto of = [&](const char* name) { return metric(folder.path(), "evaluated", name); };
  EXPECT_EQ(of("eval_examples"), (std::vector<double>{15, 15, 15}));
  EXPECT_EQ(of("eval_sampling/logp_difference"), (std::vector<double>{0, 0, 0}));
  EXPECT_EQ(of("eval_reward"), of("eval_rewards/contains/mean"));
  EXPECT_EQ(of("eval_completions/max_length"), (std::vector<double>{10, 10, 10}));
  for (const double reward : of("eval_reward")) EXPECT_TRUE(reward > 0 && reward < 1) << reward;
  EXPECT_NE(of("eval_reward")[0], of("eval_reward")[2]) << "the model has changed";
}

TEST(EvaluatedCompletions, AreTheSameInEveryEvaluationAndInEveryBatch) {
  const test::TemporaryFolder folder;
  const std::string still = "learning_rate: 0, max_training_steps: 2, evaluation_steps: 1";
  run(folder.path(), "still", still);
  const std::vector<double> rewards = metric(folder.path(), "still", "eval_reward");
  ASSERT_EQ(rewards.size(), 2u);
  EXPECT_EQ(rewards[0], rewards[1]);
  run(folder.path(), "one", still + ", eval_batch_size: 1");
  EXPECT_NEAR(metric(folder.path(), "one", "eval_reward").at(0), rewards[0], 1e-6);
}

TEST(EvaluatedCompletions, AreThoseOfEveryMethodThatSamples) {
  const test::TemporaryFolder folder;
  for (const char* method :
       {"rloo", "gfpo, num_remains_in_group: 2", "sdpo", "ppo, num_return_sequences: 1",
        "online_dpo, num_return_sequences: 2", "nash_md, num_return_sequences: 2", "xpo, num_return_sequences: 2"}) {
    Value keys = parse_yaml(str("{trainer_type: ", method, ", evaluation_steps: 1, max_training_steps: 1}"));
    const std::string name = keys.find("trainer_type")->scalar, flow = to_yaml_flow(keys);
    run(folder.path(), name, flow.substr(1, flow.size() - 2));
    const std::vector<double> losses = metric(folder.path(), name, "eval_loss");
    ASSERT_EQ(losses.size(), 1u) << name;
    EXPECT_TRUE(std::isfinite(losses[0])) << name;
    EXPECT_EQ(metric(folder.path(), name, "eval_completions/mean_length").size(), 1u) << name;
  }
}

TEST(EvaluatedCompletions, AndThoseThatAreLearnedAreTheSameOnTwoRanks) {
  const test::TemporaryFolder folder;
  const std::string keys = "learning_rate: 1e-3, evaluation_steps: 2, max_training_steps: 2";
  const auto train = [&](int ranks, const std::string& name, const std::vector<int64_t>& sizes) {
    test::run_ranks(ranks, [&](const test::Meeting& meeting) {
      std::shared_ptr<const collective::Team> team;
      if (ranks > 1) {
        collective::TeamOptions options;
        options.file_store = meeting.file;
        team = collective::Team::join(meeting.world, mesh::Mesh(mesh::default_axes(), sizes), options);
      }
      run(folder.path(), name, keys, team);
    });
  };
  train(1, "one", {});
  const auto rollouts = [&](const std::string& name) {
    return files::read(folder.path() / "out" / name / "rollouts.jsonl");
  };
  for (const auto& [name, sizes] : {std::pair{"dp", std::vector<int64_t>{2, 1, 1, 1, 1}}, {"fsdp", {1, 2, 1, 1, 1}}}) {
    train(2, name, sizes);
    // The first step's: of the same weights.
    const std::string one = rollouts("one"), two = rollouts(name);
    const size_t first = one.find("{\"step\": 2");
    ASSERT_NE(first, std::string::npos);
    EXPECT_EQ(two.substr(0, first), one.substr(0, first)) << name;
    for (const char* metric_name : {"loss", "grad_norm"}) {
      const double expected = metric(folder.path(), "one", metric_name).at(0);
      EXPECT_NEAR(metric(folder.path(), name, metric_name).at(0), expected, 1e-5 * std::abs(expected) + 1e-7) << name;
    }
    EXPECT_EQ(metric(folder.path(), name, "eval_examples"), metric(folder.path(), "one", "eval_examples"));
    EXPECT_EQ(metric(folder.path(), name, "eval_sampling/logp_difference"), std::vector<double>{0});
    EXPECT_NEAR(metric(folder.path(), name, "eval_reward").at(0), metric(folder.path(), "one", "eval_reward").at(0),
                0.1);
  }
}

}  // namespace
}  // namespace easydel::train
