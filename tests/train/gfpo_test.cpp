// Methods that are grpo on other completions or with other rewards: gfpo and rlvr.
#include "easydel/train/gfpo.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "train/sampled_run.h"

namespace easydel::train {
namespace {

using test::LogLines, test::TemporaryFolder;

// The formula by hand: rewards per token are 0.5, 0.1, -0.25 and 0.5, of which 0.5 is the largest; 8 is the longest.
TEST(Gfpo, ScoresByRewardPerTokenAndByLength) {
  const std::vector<double> rewards{1, 0.8, -1, 2}, lengths{2, 8, 4, 4};
  const std::vector<double> both = filter_scores(rewards, lengths, {.length_weight = 0.3, .efficiency_weight = 0.7});
  const double expected[] = {0.7 * 1 + 0.3 * 0.75, 0.7 * 0.2, -0.7 * 0.5 + 0.3 * 0.5, 0.7 * 1 + 0.3 * 0.5};
  for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(both[i], expected[i], 1e-12) << i;
  EXPECT_EQ(filter_scores(rewards, lengths, {.filter_by_efficiency = false}),
            (std::vector<double>{0.375, 0, 0.25, 0.25}));
  EXPECT_EQ(filter_scores({0, 0}, {1, 2}, {.filter_by_length = false}), (std::vector<double>{0, 0}));
  EXPECT_EQ(best_of(both, 2), (std::vector<size_t>{0, 3}));
  EXPECT_EQ(best_of({1, 1, 1}, 2), (std::vector<size_t>{0, 1}));
}

// Returns what was sampled, and the metrics of the steps.
std::pair<std::vector<Value>, std::vector<Value>> run(const std::filesystem::path& folder, const std::string& keys) {
  const LogLines log;
  std::string rows;
  int number = 0;
  for (const char* prompt : {"Once upon a time", "One day", "The cat", "Tom and"})
    rows += str("{\"prompt\": \"", prompt, "\", \"answer\": 3, \"hard\": ", ++number, "}\n");
  test::write_file(folder / "prompts.jsonl", rows);
  Value trainer = Value::map();
  test::put(
      trainer,
      "{total_batch_size: 8, num_return_sequences: 4, max_completion_length: 12, temperature: 1.0, learning_rate: "
      "1e-3, shuffle_train_dataset: false, max_training_steps: 1}");
  test::put(trainer, "{" + keys + "}");
  Trainer trained(test::small_run(folder, to_json(trainer),
                                  "{informs: [{data_files: \"" + (folder / "prompts.jsonl").string() + "\"}]}"));
  trained.run();
  return {test::json_lines(folder / "out/small/rollouts.jsonl"), test::json_lines(folder / "out/small/metrics.jsonl")};
}

const char* const checked = "rewards: [{type: contains, words: [a, the, he]}, {type: repetition, weight: 0.5}], ";

TEST(Gfpo, LearnsFromTheBestOfEachGroup) {
  const TemporaryFolder folder;
  const auto [sampled, steps] =
      run(folder.path(), std::string(checked) + "trainer_type: gfpo, num_remains_in_group: 2");
  ASSERT_EQ(sampled.size(), 8u);
  for (size_t group = 0; group < 2; ++group) {
    std::vector<double> rewards, lengths;
    for (size_t i = 4 * group; i < 4 * group + 4; ++i) {
      const Value& one = *sampled[i].find("rewards");
      rewards.push_back(*one.find("contains")->as_double() + 0.5 * *one.find("repetition")->as_double());
      lengths.push_back(double(sampled[i].find("ids")->items.size()));
    }
    const std::vector<size_t> kept = best_of(filter_scores(rewards, lengths, {}), 2);
    double sum = 0;
    for (size_t i = 0; i < 4; ++i) {
      const double advantage = *sampled[4 * group + i].find("advantage")->as_double();
      sum += advantage;
      if (std::ranges::find(kept, i) == kept.end()) {
        EXPECT_EQ(advantage, 0) << i;
      }
    }
    const double deviation = std::abs(rewards[kept[0]] - rewards[kept[1]]) / std::sqrt(2.0);
    const double expected = (rewards[kept[0]] - rewards[kept[1]]) / 2 / (deviation + 1e-4);
    EXPECT_NEAR(*sampled[4 * group + kept[0]].find("advantage")->as_double(), expected, 1e-4);
    EXPECT_NEAR(sum, 0, 1e-5);
  }
}

TEST(Gfpo, RefusesMoreThanAGroupHas) {
  const TemporaryFolder folder;
  EXPECT_EQ(
      test::refusal([&] { run(folder.path(), std::string(checked) + "trainer_type: gfpo, num_remains_in_group: 5"); }),
      "trainer.num_remains_in_group: 5 of 4 completions cannot remain\n    give at most 4, or raise "
      "num_return_sequences");
}

// Rewards by the method's own keys, clipped together, and advantages weighed by the rows' difficulty.
TEST(Rlvr, ChecksAnswersFormatsAndLengths) {
  const TemporaryFolder folder, weighed;
  const std::string keys =
      "trainer_type: rlvr, format_pattern: \"he|was|nd\", format_reward_weight: 3, length_penalty_target: 4, "
      "length_penalty_weight: 0.5, reward_clip_range: 1.5, max_len_mask: false, scale_rewards: none";
  const auto [plain, steps] = run(folder.path(), keys);
  ASSERT_EQ(plain.size(), 8u);
  for (size_t group = 0; group < 2; ++group) {
    std::vector<double> worth;
    double mean = 0;
    for (size_t i = 4 * group; i < 4 * group + 4; ++i) {
      const Value& one = *plain[i].find("rewards");
      worth.push_back(std::clamp(*one.find("answer")->as_double() + 3 * *one.find("format")->as_double() +
                                     0.5 * *one.find("length")->as_double(),
                                 -1.5, 1.5));
      mean += worth.back() / 4;
    }
    for (size_t i = 0; i < 4; ++i)
      EXPECT_NEAR(*plain[4 * group + i].find("advantage")->as_double(), worth[i] - mean, 1e-5);
  }
  const auto [hard, more] = run(weighed.path(), keys + ", difficulty_key: hard, difficulty_loss_weight: true");
  for (size_t i = 0; i < 8; ++i)
    EXPECT_NEAR(*hard[i].find("advantage")->as_double(), (i < 4 ? 1 : 2) * *plain[i].find("advantage")->as_double(),
                1e-5);
}

}  // namespace
}  // namespace easydel::train
