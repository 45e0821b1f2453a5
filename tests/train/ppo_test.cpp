// trainer_type: ppo as runs; its numbers are those of TRL's recorded pieces (probe/recorded_vectors_test.cpp).
#include <gtest/gtest.h>

#include <cmath>

#include "easydel/train/value_head.h"
#include "easydel/weights/safetensors.h"
#include "train/sampled_run.h"

namespace easydel::train {
namespace {

using test::LogLines, test::TemporaryFolder;

using test::FinishedRun;

TrainerParts ppo_run(const std::filesystem::path& folder, const std::string& keys) {
  return test::sampled_run(folder,
                           "trainer_type: ppo, total_batch_size: 4, rewards: [{type: contains, words: [a, the, he]}, "
                           "{type: repetition, weight: 0.5}]",
                           keys);
}

// The weights are those of the policy and of the value head.
FinishedRun run(const std::filesystem::path& folder, const std::string& name, const std::string& keys) {
  return test::finished(ppo_run(folder, keys + ", model_name: " + name), folder, name);
}

double metric(const Value& line, const std::string& name) { return test::metric_of(line, name).value_or(NAN); }

TEST(Ppo, ARunThatIsCutGoesOnToTheByte) {
  const TemporaryFolder folder;
  const std::string keys = "num_ppo_epochs: 2, whiten_rewards: true, entropy_coef: 0.01";
  const FinishedRun whole = run(folder.path(), "whole", keys + ", max_training_steps: 5");
  for (const int cut : {1, 2}) {
    const std::string name = str("cut", cut);
    run(folder.path(), name, keys + str(", max_training_steps: ", cut));
    const FinishedRun rest = run(folder.path(), name, keys + ", max_training_steps: 5");
    EXPECT_TRUE(rest.weights == whole.weights) << cut;
    EXPECT_EQ(rest.rollouts, whole.rollouts) << cut;
  }
}

// Of a first epoch the ratios are 1, so nothing is clipped and the advantages, whose mean is 0, are the loss.
TEST(Ppo, LearnsFromRatiosThatBeginAtOne) {
  const TemporaryFolder folder;
  const std::vector<Value> steps =
      run(folder.path(), "small", "num_ppo_epochs: 2, learning_rate: 1e-2, max_training_steps: 2").metrics;
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_LT(metric(steps[0], "policy/approxkl"), 1e-10);
  EXPECT_NEAR(metric(steps[0], "loss/policy_avg"), 0, 1e-5);
  EXPECT_EQ(metric(steps[0], "policy/clipfrac_avg"), 0);
  EXPECT_NEAR(metric(steps[0], "loss"), metric(steps[0], "loss/policy_avg") + 0.1 * metric(steps[0], "loss/value_avg"),
              1e-6);
  EXPECT_NEAR(metric(steps[0], "objective/kl"), 0, 1e-4);
  EXPECT_NEAR(metric(steps[0], "objective/rlhf_reward"), metric(steps[0], "objective/scores"), 1e-4);
  EXPECT_GT(metric(steps[1], "policy/approxkl"), 1e-8);
}

TEST(Ppo, TakesImportanceOfTheTokensThatWereLeft) {
  const TemporaryFolder folder;
  const std::vector<Value> steps =
      run(folder.path(), "small", "top_k: 3, temperature: 1.5, importance: sampled, max_training_steps: 1").metrics;
  EXPECT_LT(metric(steps.at(0), "policy/entropy"), std::log(3.0));
  EXPECT_LT(metric(steps.at(0), "policy/approxkl"), 1e-10);
  EXPECT_NEAR(metric(steps.at(0), "objective/kl"), 0, 1e-4);
}

TEST(Ppo, TheValueHeadIsTrainedAndNotSavedWithTheModel) {
  const TemporaryFolder folder;
  const LogLines log;
  Trainer trainer(ppo_run(folder.path(), "max_training_steps: 1"));
  const nn::Entry* const head = trainer.model().parameters().find("value_head.weight");
  ASSERT_NE(head, nullptr);
  const Tensor before = head->shard.detach().clone();
  EXPECT_NEAR(before.std().item<double>(), 0.02, 0.006);
  trainer.run();
  EXPECT_GT((head->shard.detach() - before).abs().max().item<double>(), 1e-4);
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder / "out/small/run-1"))
    if (entry.path().filename() == "model.safetensors") {
      EXPECT_FALSE(weights::SafetensorsFile::open(entry.path())->has("value_head.weight"));
    }
  models::load_model(folder / "out/small/run-1", {});
}

TEST(Ppo, RefusesGroups) {
  const TemporaryFolder folder;
  const LogLines log;
  const auto refused = [&](const std::string& keys) {
    return test::refusal([&] { Trainer trainer(ppo_run(folder.path(), keys)); });
  };
  EXPECT_EQ(refused("num_return_sequences: 2"),
            "trainer.num_return_sequences: is 2, and ppo samples one completion of a prompt\n    leave it out, or give "
            "1");
  EXPECT_EQ(refused("mask_truncated_completions: true"),
            "trainer.mask_truncated_completions: ppo learns every completion\n    leave it out; missing_eos_penalty "
            "makes those that do not end worse");
}

}  // namespace
}  // namespace easydel::train
