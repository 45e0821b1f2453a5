// Evaluation data in several sets by name.
#include <gtest/gtest.h>

#include "train/small_run.h"

namespace easydel::train {
namespace {

TEST(EvaluationSets, HaveLossesOfTheirOwnAndOneOfAll) {
  const test::TemporaryFolder folder;
  const test::LogLines log;
  test::write_file(folder / "cats.txt", "The cat was big.\nThe cat ran to the tree.\nOne day a cat saw a dog.\n");
  test::write_file(folder / "dogs.txt", "Tom had a red dog who liked to play.\n");
  const auto run = [&](const std::string& name, const std::string& evaluation, const std::string& more) {
    Trainer(test::small_run(
                folder.path(),
                str("{max_training_steps: 2, evaluation_steps: 1, eval_batch_size: 2, model_name: ", name, more, "}"),
                str("{evaluation: [", evaluation, "]}")))
        .run();
    return [path = folder / "out" / name](const std::string& metric) { return test::metric(path, metric); };
  };
  const auto inform = [&](const std::string& file, const std::string& name) {
    return str("{data_files: \"", (folder / file).string(), "\"", name.empty() ? "" : ", name: " + name, "}");
  };
  const auto cats = run("one_cats", inform("cats.txt", "cats"), "");
  const auto dogs = run("one_dogs", inform("dogs.txt", ""), "");
  EXPECT_TRUE(cats("eval/cats/loss").empty()) << "it would be said twice";
  const auto both = run("both", inform("cats.txt", "cats") + ", " + inform("dogs.txt", "dogs"),
                        ", load_best_model_at_end: true, metric_for_best_model: eval/dogs/loss");
  const double tokens[] = {cats("eval_tokens").at(0), dogs("eval_tokens").at(0)};
  for (size_t i = 0; i < 2; ++i) {
    const double a = cats("eval_loss").at(i), b = dogs("eval_loss").at(i);
    EXPECT_EQ(both("eval/cats/loss").at(i), a);
    EXPECT_EQ(both("eval/dogs/loss").at(i), b);
    EXPECT_EQ(both("eval/cats/mean_token_accuracy").at(i), cats("eval_mean_token_accuracy").at(i));
    // Of each text all tokens but the first are labels.
    const double labels[] = {tokens[0] - 3, tokens[1] - 1};
    EXPECT_NEAR(both("eval_loss").at(i), (labels[0] * a + labels[1] * b) / (labels[0] + labels[1]), 1e-6);
  }
  EXPECT_EQ(both("eval_examples").at(0), 4);

  const auto mixed = run("mixed", inform("cats.txt", "") + ", " + inform("dogs.txt", "dogs"), "");
  EXPECT_EQ(mixed("eval/dogs/loss"), both("eval/dogs/loss"));
  EXPECT_EQ(mixed("eval_loss"), both("eval_loss"));
  EXPECT_TRUE(mixed("eval/cats/loss").empty());
}

}  // namespace
}  // namespace easydel::train
