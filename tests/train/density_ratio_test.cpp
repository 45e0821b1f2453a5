#include "easydel/train/density_ratio.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <cmath>

#include "easydel/base/error.h"
#include "train/small_run.h"

namespace easydel::train {
namespace {

std::vector<double> numbers(const Value& list) {
  std::vector<double> out;
  for (const Value& item : list.items) out.push_back(*item.as_double());
  return out;
}

// scikit-learn's, solved to the last digits (scripts/density_ratio_golden.py).
TEST(DensityRatio, TheClassifierIsScikitLearns) {
  const Value recorded = parse_file(test::test_data("trl/density_ratio.json"));
  std::vector<double> rows;
  for (const Value& row : recorded.find("x")->items)
    for (const double number : numbers(row)) rows.push_back(number);
  const auto count = std::ssize(recorded.find("x")->items);
  const Tensor x = at::tensor(at::ArrayRef<double>(rows), at::kDouble).view({count, -1});
  const Tensor positive = at::arange(count).lt(*recorded.find("good")->as_int());
  const auto made = LogisticClassifier::fit(x, positive);
  const std::vector<double> coefficients = numbers(*recorded.find("coefficients")),
                            probability = numbers(*recorded.find("probability"));
  EXPECT_NEAR(made.intercept, *recorded.find("intercept")->as_double(), 1e-6);
  for (size_t i = 0; i < coefficients.size(); ++i)
    EXPECT_NEAR(made.coefficients[int64_t(i)].item<double>(), coefficients[i], 1e-6);
  const Tensor found = made.probability(x);
  for (size_t i = 0; i < probability.size(); ++i) EXPECT_NEAR(found[int64_t(i)].item<double>(), probability[i], 1e-6);
}

class RatioRun : public testing::Test {
 protected:
  // Good and bad answers of different prompts; one bad answer has a prompt like the good ones.
  TrainerParts parts(const std::string& more) {
    std::string rows;
    const auto add = [&](const std::string& prompt, bool good) {
      rows += "{\"prompt\": \"" + prompt +
              "\", \"completion\": \" and then slept\", \"label\": " + (good ? "true" : "false") + "}\n";
    };
    for (int i = 0; i < 4; ++i) {
      add(str("The king of the ", i, " sunny mountains"), true);
      add(str("two plus ", i, " is"), false);
    }
    add("The king of the 9 sunny mountains", false);
    test::write_file(folder_ / "rows.jsonl", rows);
    return test::small_run(
        folder_.path(),
        "{trainer_type: bco, total_batch_size: 9, max_training_steps: 1, shuffle_train_dataset: false" + more + "}",
        "{informs: [{data_files: \"" + (folder_ / "rows.jsonl").string() + "\"}]}");
  }
  double loss(const std::string& more) {
    const test::LogLines log;
    Trainer trainer(parts(more));
    return trainer.run().train_loss;
  }
  std::string model() const { return "embedding_model: \"" + test::test_data("encoders/sentences").string() + "\""; }
  const test::TemporaryFolder folder_;
};

// Before the first update all rewards are 0, so each answer's loss is log 2, times its ratio.
TEST_F(RatioRun, BadAnswersWeighAsTheirPromptsAreLikelyAmongTheGoodOnes) {
  const double even = std::log(2.0);
  EXPECT_NEAR(loss(", model_name: plain"), even, 1e-5);
  EXPECT_NEAR(loss(", model_name: bound, min_density_ratio: 3, max_density_ratio: 3, " + model()),
              even * (4 + 5 * 3) / 9, 1e-5);
  const double told = loss(", model_name: told, min_density_ratio: 0.001, max_density_ratio: 1000, " + model());
  // The four other bad prompts hardly count, the fifth one does.
  EXPECT_GT(told, even * 4.5 / 9);
  EXPECT_NE(told, even);
  EXPECT_EQ(loss(", model_name: again, min_density_ratio: 0.001, max_density_ratio: 1000, " + model()), told);
}

TEST_F(RatioRun, NeedsGoodAndBadAnswersAndAModel) {
  const test::LogLines log;
  EXPECT_EQ(test::refusal([&] { Trainer(parts(", embedding_model: ./nowhere")).run(); }).substr(0, 32),
            "trainer.embedding_model: './nowh");
  TrainerParts all_good = parts(", " + model());
  test::write_file(folder_ / "rows.jsonl", "{\"prompt\": \"Once\", \"completion\": \" upon\", \"label\": true}\n");
  EXPECT_EQ(test::refusal([&] { Trainer(std::move(all_good)).run(); }),
            "trainer.embedding_model: no answer of the data is bad\n    give data with both, or leave the key out");
  EXPECT_EQ(
      test::refusal([&] { parts(", min_density_ratio: 2, max_density_ratio: 1"); }),
      "trainer:1:114: min_density_ratio: 2 is above max_density_ratio, 1\n1 problem in trainer; nothing was run.");
}

}  // namespace
}  // namespace easydel::train
