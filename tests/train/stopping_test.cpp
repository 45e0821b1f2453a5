// Stopping early, keeping the best checkpoint, averages of parameters, and files that ask for a save or the end.
#include <gtest/gtest.h>

#include <optional>

#include "easydel/base/files.h"
#include "train/small_run.h"

namespace easydel::train {
namespace {

using test::small_run, test::TemporaryFolder, test::weights_of;

// Evaluations that get worse at once: a rate at which the model forgets.
TrainerParts worsening(const TemporaryFolder& folder, const std::string& more) {
  test::write_file(folder / "held_out.txt", "The sun was big and hot, and the fish were happy in the sea.\n");
  return small_run(folder.path(),
                   str("{do_eval: true, evaluation_steps: 1, num_train_epochs: 4, learning_rate: 5e-3", more, "}"),
                   str("{evaluation: [{data_files: \"", (folder / "held_out.txt").string(), "\"}]}"));
}

std::string saved_weights(const std::filesystem::path& checkpoint) {
  return test::read_file(checkpoint / "model.safetensors");
}

TEST(Stopping, EndsWithTheBestModelAndKeepsItsCheckpoint) {
  const TemporaryFolder folder;
  const test::LogLines log;
  const std::string keys =
      ", load_best_model_at_end: true, early_stopping_patience: 3, save_steps: 1, save_total_limit: 1";
  std::optional<Trainer> trainer(std::in_place, worsening(folder, keys));
  const Outcome outcome = trainer->run();
  ASSERT_TRUE(outcome.best_step);
  EXPECT_EQ(outcome.step, *outcome.best_step + 3) << "three evaluations without a better one";
  EXPECT_LT(outcome.step, outcome.steps);
  const auto best = folder / "out/small" / ("run-" + std::to_string(*outcome.best_step));
  EXPECT_EQ(outcome.checkpoint, best);
  EXPECT_TRUE(files::exists(folder / "out/small" / ("run-" + std::to_string(outcome.step))));
  EXPECT_FALSE(files::exists(folder / "out/small" / ("run-" + std::to_string(outcome.step - 1))));
  EXPECT_TRUE(log.has("stopped early after step"));
  models::LoadOptions load;
  load.dtype = load.param_dtype = models::DTypeSetting::fp32;
  const std::string weights = weights_of(trainer->model());
  EXPECT_EQ(weights, weights_of(*models::load_model(best, load)));

  // A new process knows that the run is over, and ends with the same weights.
  trainer.reset();
  Trainer again(worsening(folder, keys));
  const Outcome second = again.run();
  EXPECT_EQ(second.step, outcome.step);
  EXPECT_EQ(second.best_step, outcome.best_step);
  EXPECT_EQ(weights_of(again.model()), weights);
}

TEST(Stopping, FilesAskForASaveOrTheEnd) {
  struct Wish : Watcher {
    explicit Wish(std::filesystem::path folder) : folder(std::move(folder)) {}
    void stepped(const StepReport& report) override {
      if (report.step == 2) test::write_file(folder / "save", "");
      if (report.step == 4) test::write_file(folder / "stop", "");
    }
    std::filesystem::path folder;
  };
  const TemporaryFolder folder;
  const test::LogLines log;
  Wish wish(folder / "out/small");
  TrainerParts parts = small_run(folder.path());
  parts.watcher = &wish;
  const Outcome outcome = Trainer(std::move(parts)).run();
  EXPECT_EQ(outcome.step, 4);
  EXPECT_FALSE(outcome.finished);
  for (const char* name : {"run-2", "run-4"}) EXPECT_TRUE(files::exists(folder / "out/small" / name)) << name;
  for (const char* name : {"save", "stop"}) EXPECT_FALSE(files::exists(folder / "out/small" / name)) << name;
  EXPECT_TRUE(log.has("stopped by the file stop"));
}

// What is evaluated and saved is an average; what is trained goes on to the bit.
TEST(Averages, AreEvaluatedAndSavedAndTheRunGoesOnToTheBit) {
  for (const std::string keys : {"ema_decay: 0.7", "optimizer: schedule_free_adamw"}) {
    SCOPED_TRACE(keys);
    const TemporaryFolder straight, stopped;
    const test::LogLines log;
    const std::string more = ", " + keys + ", save_steps: 2, learning_rates: [{pattern: embed_tokens, rate: 1e-4}]";
    Trainer whole(worsening(straight, more));
    const Outcome outcome = whole.run();
    Trainer(worsening(stopped, more + ", max_training_steps: 5")).run();
    Trainer second(worsening(stopped, more + ", max_training_steps: 16"));
    EXPECT_EQ(second.plan().from_step, 5);
    second.run();
    EXPECT_EQ(weights_of(second.model()), weights_of(whole.model()));
    const auto last = straight / "out/small/run-16", averaged = keys.starts_with("ema") ? last / "ema" : last;
    EXPECT_EQ(saved_weights(last), saved_weights(stopped / "out/small/run-16"));
    // The average is what was evaluated: its loss is that of the last evaluation.
    TrainerParts of_average = worsening(straight, ", model_name: other, do_train: false");
    of_average.model = models::load_model(averaged, of_average.load);
    EXPECT_NEAR(Trainer(std::move(of_average)).evaluate().loss, outcome.after->loss, 1e-6);
    if (averaged != last) {
      EXPECT_NE(saved_weights(last), saved_weights(averaged));
    }
  }
}

TEST(Optimizer, RefusesAGroupThatNobodyIsIn) {
  const TemporaryFolder folder;
  EXPECT_EQ(
      test::refusal(
          [&] { Trainer(small_run(folder.path(), "{learning_rates: [{pattern: q_proj}, {pattern: adapter}]}")); }),
      "trainer.learning_rates[1].pattern: 'adapter' finds no parameter that is trained and in no group before it\n"
      "    see `easydel describe model` for their names");
}

}  // namespace
}  // namespace easydel::train
