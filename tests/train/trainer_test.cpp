#include "easydel/train/trainer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <csignal>

#include "easydel/base/files.h"
#include "easydel/data/byte_stream.h"
#include "support/data.h"
#include "train/small_run.h"

namespace easydel::train {
namespace {

using test::LogLines;
using test::small_run;
using test::TemporaryFolder;
using test::weights_of;

struct Watched : Watcher {
  void stepped(const StepReport& report) override { steps.push_back(report); }
  void evaluated(const EvaluationReport& report) override { evaluations.push_back(report); }
  std::vector<StepReport> steps;
  std::vector<EvaluationReport> evaluations;
};

struct Ran {
  Outcome outcome;
  Watched watched;
  std::string weights;
};

Ran ran(TrainerParts parts) {
  Ran out;
  parts.watcher = &out.watched;
  Trainer trainer(std::move(parts));
  out.outcome = trainer.run();
  out.weights = weights_of(trainer.model());
  return out;
}

TEST(Trainer, LearnsALittleText) {
  const TemporaryFolder folder;
  LogLines log;
  const Ran run = ran(small_run(folder.path(), "num_train_epochs: 5"));
  ASSERT_EQ(run.watched.steps.size(), 20u);  // 13 examples by 4, the last of each epoch short
  EXPECT_LT(run.watched.steps.back().loss, 0.7 * run.watched.steps.front().loss);
  EXPECT_TRUE(run.outcome.finished);
  EXPECT_TRUE(std::filesystem::exists(folder / "out/small/run-20/model.safetensors"));
  EXPECT_TRUE(std::filesystem::exists(folder / "out/small/run-20/tokenizer.json"));
  EXPECT_NE(test::read_file(folder / "out/small/loss.svg").find("<polyline"), std::string::npos);
  EXPECT_TRUE(log.has("mixture.informs[0]: 13 rows of text")) << log.text;
}

TEST(Trainer, AccumulationChangesNothingButRounding) {
  const TemporaryFolder folder;
  LogLines log;
  const Ran whole = ran(small_run(folder.path(), "{do_last_save: false, num_train_epochs: 1}"));
  const Ran parts =
      ran(small_run(folder.path(), "{do_last_save: false, num_train_epochs: 1, gradient_accumulation_steps: 4}"));
  ASSERT_EQ(whole.watched.steps.size(), parts.watched.steps.size());
  for (size_t i = 0; i < whole.watched.steps.size(); ++i) {
    EXPECT_NEAR(parts.watched.steps[i].loss, whole.watched.steps[i].loss, 1e-5 * whole.watched.steps[i].loss);
    EXPECT_NEAR(*parts.watched.steps[i].gradient_norm, *whole.watched.steps[i].gradient_norm,
                1e-4 * *whole.watched.steps[i].gradient_norm);
  }
}

TEST(Trainer, TakesAProgramsOwnExamplesAndTransformation) {
  const TemporaryFolder folder;
  LogLines log;
  const std::string keys = "{do_last_save: false, max_training_steps: 3, scheduler: cosine, warmup_steps: 1, ";
  const auto own = [&](const std::string& name, auto transformation) {
    TrainerParts parts = small_run(folder.path(), keys + "model_name: " + name + "}");
    Watched watched;
    parts.watcher = &watched;
    auto source = std::make_unique<DatasetSource>(build_dataset(parts.trainer, parts.mixture, parts.tokenizer), 4, 1);
    const std::optional<Transformation> tx = transformation(parts.trainer.common);
    parts.tokenizer = nullptr;
    const std::string start = weights_of(*parts.model);
    Trainer trainer(std::move(parts), std::move(source), tx);
    trainer.run();
    EXPECT_EQ(watched.steps.size(), 3u);
    return std::pair(start, weights_of(trainer.model()));
  };
  const Ran usual = ran(small_run(folder.path(), keys + "model_name: usual}"));
  EXPECT_EQ(own("none", [](const TrainerConfig&) { return std::nullopt; }).second, usual.weights);
  EXPECT_EQ(own("same", [](const TrainerConfig& config) { return transformation_of(config, 3); }).second,
            usual.weights);
  EXPECT_NE(own("lion",
                [](const TrainerConfig& config) {
                  Transformation tx = transformation_of(config, 3);
                  tx.optimizer.rules = {lion()};
                  return tx;
                })
                .second,
            usual.weights);
  const auto [start, end] = own("still", [](const TrainerConfig&) { return Transformation{}; });
  EXPECT_EQ(start, end) << "the rate of an empty transformation is 0";
}

double metric_of(const StepReport& step, std::string_view name) {
  for (const auto& [found, value] : step.metrics)
    if (found == name) return value;
  return NAN;
}

TEST(Trainer, AddsTheRoutersLossesOfAMixtureOfExpertsAndReportsHowItChooses) {
  const TemporaryFolder folder;
  LogLines log;
  const auto run = [&](const std::string& more, bool asked) {
    TrainerParts parts = small_run(
        folder.path(), "{do_last_save: false, shuffle_train_dataset: false, max_training_steps: 1" + more + "}");
    parts.load.overrides.set("output_router_logits", Value::boolean(asked));
    parts.model = models::load_model(test::test_data("trl/sft/models/tiny-qwen3-moe"), parts.load);
    return ran(std::move(parts)).watched.steps.at(0);
  };
  const StepReport plain = run("", false), enabled = run(", aux_loss_enabled: true", false), asked = run("", true);
  EXPECT_TRUE(std::isnan(metric_of(plain, "aux_loss")));
  EXPECT_NEAR(enabled.loss - plain.loss, 0.02 * metric_of(enabled, "aux_loss"), 1e-5);
  EXPECT_EQ(asked.loss, enabled.loss);
  EXPECT_NE(*enabled.gradient_norm, *plain.gradient_norm);
  // Four experts: an entropy below log 4, the busiest with more than an even share.
  EXPECT_LT(metric_of(plain, "router_entropy"), std::log(4.0));
  EXPECT_GE(metric_of(plain, "router_busiest_load"), 1.0);
  EXPECT_EQ(metric_of(plain, "router_idle_experts"), 0.0);
}

TEST(Trainer, WarnsThatADenseModelHasNoRouterLosses) {
  const TemporaryFolder folder;
  LogLines log;
  ran(small_run(folder.path(), "{do_last_save: false, max_training_steps: 1, aux_loss_enabled: true}"));
  EXPECT_TRUE(log.has("trainer.aux_loss_enabled: llama has no router losses; none are added")) << log.text;
}

// Packed rows have the same loss as separate ones: documents do not attend to each other.
TEST(Trainer, PackedDocumentsLearnAsTheyDoAlone) {
  const TemporaryFolder folder;
  LogLines log;
  const std::string one_step = "{do_last_save: false, shuffle_train_dataset: false, max_training_steps: 1, ";
  const Ran alone = ran(small_run(folder.path(), one_step + "total_batch_size: 13}"));
  const Ran packed =
      ran(small_run(folder.path(), one_step + "total_batch_size: 64, packing: true, packing_strategy: bfd}"));
  EXPECT_NEAR(packed.watched.steps[0].loss, alone.watched.steps[0].loss, 1e-5);
  EXPECT_NEAR(*packed.watched.steps[0].gradient_norm, *alone.watched.steps[0].gradient_norm, 1e-3);
  EXPECT_EQ(packed.watched.steps[0].tokens, alone.watched.steps[0].tokens);
}

class Resuming : public testing::TestWithParam<models::DTypeSetting> {};

TEST_P(Resuming, GoesOnToTheBit) {
  const TemporaryFolder whole, halves;
  LogLines log;
  const models::DTypeSetting dtype = GetParam();
  // 4 steps an epoch: step 3 is in the middle of the first.
  const Ran straight =
      ran(small_run(whole.path(), "{max_training_steps: 7, scheduler: cosine, warmup_steps: 2}", "", dtype));
  auto stopping =
      small_run(halves.path(), "{max_training_steps: 7, scheduler: cosine, warmup_steps: 2, save_steps: 3}", "", dtype);
  struct Stop : Watcher {
    void stepped(const StepReport& report) override {
      if (report.step == 3) raise(SIGTERM);
    }
  } stop;
  stopping.watcher = &stop;
  const Outcome first = Trainer(std::move(stopping)).run();
  EXPECT_EQ(first.signal, SIGTERM);
  EXPECT_EQ(first.step, 3);
  EXPECT_FALSE(first.finished);
  EXPECT_TRUE(log.has("stopped by a signal after step 3 of 7; saved in ")) << log.text;

  const Ran second =
      ran(small_run(halves.path(), "{max_training_steps: 7, scheduler: cosine, warmup_steps: 2}", "", dtype));
  EXPECT_EQ(second.watched.steps.size(), 4u);
  EXPECT_EQ(second.watched.steps.back().loss, straight.watched.steps.back().loss);
  EXPECT_TRUE(second.weights == straight.weights);
  EXPECT_EQ(second.watched.steps.back().tokens_seen, straight.watched.steps.back().tokens_seen);
  // metrics.jsonl has each step once.
  std::vector<int64_t> steps;
  data::for_each_line(halves / "out/small/metrics.jsonl", [&](std::string_view line, int64_t) {
    steps.push_back(*parse_json(line).find("step")->as_int());
    return true;
  });
  EXPECT_EQ(steps, (std::vector<int64_t>{1, 2, 3, 4, 5, 6, 7}));
}

INSTANTIATE_TEST_SUITE_P(NumberTypes, Resuming,
                         testing::Values(models::DTypeSetting::fp32, models::DTypeSetting::bf16));

TEST(Trainer, RefusesACheckpointOfOtherData) {
  const TemporaryFolder folder;
  LogLines log;
  ran(small_run(folder.path(), "max_training_steps: 1"));
  test::write_file(folder / "lines.txt", "Something else.\nAnd more of it.\n");
  EXPECT_EQ(test::replaced(test::refusal([&] { ran(small_run(folder.path(), "max_training_steps: 2")); }),
                           folder.path().string(), "DIR"),
            "DIR/out/small/run-1: it was trained on other data than this run's\n"
            "    name another save_directory or model_name, or set resume_if_possible: false");
}

// A checkpoint of a program that shuffled otherwise: the rest of its epoch would have other rows.
TEST(Trainer, RefusesACheckpointOfAnotherOrder) {
  for (const bool shuffled : {true, false}) {
    const TemporaryFolder folder;
    LogLines log;
    const std::string keys = str("shuffle_train_dataset: ", shuffled ? "true" : "false", ", max_training_steps: ");
    ran(small_run(folder.path(), "{" + keys + "1}"));
    const auto checkpoint = folder / "out/small/run-1";
    Value older = parse_json(test::read_file(checkpoint / "state.json"));
    auto& cursor = older.find("cursor")->entries;
    EXPECT_EQ(std::erase_if(cursor,
                            [&](const auto& entry) {
                              return entry.first == "order" &&
                                     entry.second.scalar == (shuffled ? "feistel-1" : "files");
                            }),
              1u);
    const std::string state = to_json(older);
    test::write_file(checkpoint / "state.json", state);
    Value manifest = parse_json(test::read_file(checkpoint / "manifest.json"));
    Value& entry = *manifest.find("files")->find("state.json");
    entry.set("bytes", Value::integer(int64_t(state.size())));
    entry.set("sha256", Value::text(files::sha256(state)));
    test::write_file(checkpoint / "manifest.json", to_json(manifest));
    const std::string refusal = test::refusal([&] { ran(small_run(folder.path(), "{" + keys + "2}")); });
    EXPECT_EQ(test::replaced(refusal, folder.path().string(), "DIR"),
              shuffled ? "DIR/out/small/run-1: its rows came in the order of an earlier version, and this program's is "
                         "'feistel-1': the rest of the epoch would have some rows twice, and others not\n"
                         "    finish the run with the program that began it, or name another save_directory or "
                         "model_name, or set resume_if_possible: false to start anew"
                       : "(nothing was refused)");
  }
}

TEST(Trainer, EvaluatesBeforeWithinAndAfter) {
  const TemporaryFolder folder;
  LogLines log;
  test::write_file(folder / "held_out.txt", "Once upon a time there was a bird who had 9 red balls.\n");
  const Ran run = ran(small_run(folder.path(), "{max_training_steps: 6, evaluation_steps: 2, eval_on_start: true}",
                                str("{evaluation: [{data_files: \"", (folder / "held_out.txt").string(), "\"}]}")));
  std::vector<int64_t> steps;
  for (const auto& evaluation : run.watched.evaluations) steps.push_back(evaluation.step);
  EXPECT_EQ(steps, (std::vector<int64_t>{0, 2, 4, 6}));
  EXPECT_LT(run.outcome.after->loss, run.outcome.before->loss);
  EXPECT_EQ(run.outcome.before->step, 0);
  EXPECT_EQ(run.outcome.after->examples, 1);
}

TEST(Trainer, FrozenParametersStayAndTheRestMoves) {
  const TemporaryFolder folder;
  LogLines log;
  auto parts = small_run(folder.path(),
                         "{max_training_steps: 2, do_last_save: false, frozen_parameters: \"layers\\\\.[01]\\\\.\"}");
  const auto model = parts.model;
  const auto value = [&](const char* path) { return model->parameters().find(path)->shard.detach().clone(); };
  const Tensor frozen = value("model.layers.1.mlp.up_proj.weight"), moving = value("model.layers.2.mlp.up_proj.weight");
  ran(std::move(parts));
  EXPECT_TRUE(frozen.equal(value("model.layers.1.mlp.up_proj.weight")));
  EXPECT_FALSE(moving.equal(value("model.layers.2.mlp.up_proj.weight")));
  EXPECT_EQ(test::refusal([&] { ran(small_run(folder.path(), "frozen_parameters: nothing_like_it")); }),
            "trainer.frozen_parameters: 'nothing_like_it' finds no parameter\n    see `easydel describe model` for "
            "their names");
}

TEST(Trainer, StopsAtALossThatIsNotFinite) {
  const TemporaryFolder folder;
  LogLines log;
  const std::string text =
      test::replaced(test::refusal([&] {
                       ran(small_run(folder.path(), "{learning_rate: 1e30, clip_grad: null, max_training_steps: 5}"));
                     }),
                     folder.path().string(), "DIR");
  EXPECT_TRUE(text.starts_with("step 2: the loss is ")) << text;
  EXPECT_TRUE(
      text.ends_with("\n    lower learning_rate, set clip_grad, or check the data; the next run starts anew; "
                     "the state before this step is kept in DIR/out/small/run-1.diverged"))
      << text;
}

TEST(Trainer, TheLossIsDividedByWhatLossConfigSays) {
  const TemporaryFolder folder;
  LogLines log;
  const auto first = [&](const std::string& loss_config) {
    return ran(small_run(folder.path(),
                         "{max_training_steps: 1, do_last_save: false, shuffle_train_dataset: false, "
                         "total_batch_size: 13, loss_config: " +
                             loss_config + "}"))
        .watched.steps[0];
  };
  const auto mean = first("{}");
  const double labels = static_cast<double>(mean.tokens) - 13;
  EXPECT_NEAR(first("{reduction: sum}").loss, mean.loss * labels, 1e-4 * mean.loss * labels);
  EXPECT_NEAR(first("{loss_normalizing_factor: null}").loss, mean.loss * labels, 1e-4 * mean.loss * labels);
  EXPECT_NEAR(first("{loss_normalizing_factor: 10}").loss, mean.loss * labels / 10, 1e-4 * mean.loss * labels);
  EXPECT_NEAR(first("{loss_normalizing_factor: 10, reduction: mean}").loss, mean.loss, 1e-6);
  EXPECT_NEAR(first("{loss_normalizing_factor: NUM_TOTAL_TARGET_TOKENS}").loss, mean.loss, 1e-6)
      << "every token has a label";
  EXPECT_NEAR(first("{loss_normalizing_factor: NO_WEIGHT_NUM_REAL_TARGET_TOKENS}").loss, mean.loss, 1e-6);
  EXPECT_NEAR(first("{divide_weight_sum: true}").loss, mean.loss / labels, 1e-4 * mean.loss / labels);
  EXPECT_GT(first("{z_loss: 0.01}").loss, mean.loss);
  EXPECT_GT(first("{label_smoothing: 0.1}").loss, mean.loss);
}

TEST(Trainer, AnAverageOverSequencesGivesEachOfThemOneVoice) {
  const TemporaryFolder folder;
  LogLines log;
  const std::string frozen =
      "{learning_rate: 0, do_last_save: false, shuffle_train_dataset: false, num_train_epochs: 1, ";
  double sum = 0;
  for (const auto& step : ran(small_run(folder.path(), frozen + "total_batch_size: 1}")).watched.steps)
    sum += step.loss;
  const std::string average = "loss_config: {loss_normalizing_factor: AVERAGE_PER_SEQUENCE}}";
  EXPECT_NEAR(ran(small_run(folder.path(), frozen + "total_batch_size: 13, " + average)).watched.steps[0].loss,
              sum / 13, 1e-5);
  const std::string packed = frozen + "total_batch_size: 1, packing: true, max_length: 1000, " + average;
  EXPECT_NEAR(ran(small_run(folder.path(), packed)).watched.steps[0].loss, sum / 13, 1e-5)
      << "documents of a row are sequences";
}

TEST(Trainer, EvaluatesOnlyWhereItIsNotToTrain) {
  const TemporaryFolder folder;
  LogLines log;
  const auto before = weights_of(*small_run(folder.path()).model);
  const Ran run = ran(small_run(folder.path(), "{do_train: false, do_eval: true}",
                                str("{evaluation: [{data_files: \"", (folder / "lines.txt").string(), "\"}]}")));
  EXPECT_EQ(run.watched.evaluations.size(), 1u);
  EXPECT_TRUE(run.watched.steps.empty());
  EXPECT_TRUE(run.weights == before);
}

TEST(Trainer, EmptyDataAreRefused) {
  const TemporaryFolder folder;
  LogLines log;
  test::write_file(folder / "lines.txt", "\n\n");
  EXPECT_EQ(test::refusal([&] { ran(small_run(folder.path())); }),
            "mixture.informs: there is nothing to train on in 0 rows\n    give at least one row with a text, a "
            "conversation or an answer");
}

TEST(Trainer, ARowOverLengthIsCountedOrRefused) {
  const TemporaryFolder folder;
  LogLines log;
  ran(small_run(folder.path(), "{max_training_steps: 1, do_last_save: false, max_length: 16}"));
  EXPECT_TRUE(log.has("mixture.informs: 13 of 13 rows were longer than max_length and lost ")) << log.text;
  const std::string text = test::replaced(
      test::refusal([&] { ran(small_run(folder.path(), "max_length: 16", "tokenization: {truncation: false}")); }),
      folder.path().string(), "DIR");
  EXPECT_TRUE(text.starts_with("DIR/lines.txt:1: the row has ")) << text;
  EXPECT_TRUE(
      text.ends_with(" tokens; max_length is 16\n    raise trainer.max_length, or truncate rows with "
                     "mixture.tokenization.truncation: true"))
      << text;
}

TEST(Trainer, PrefersTheChosenAnswers) {
  const TemporaryFolder folder;
  LogLines log;
  const Ran run = ran(
      small_run(folder.path(), "{trainer_type: dpo, learning_rate: 1e-4, max_training_steps: 12, max_length: 256}",
                str("{informs: [{data_files: \"", test::test_data("text/story_preferences.jsonl").string(), "\"}]}")));
  const auto metric = [&](size_t step, const std::string& name) {
    for (const auto& [key, value] : run.watched.steps[step].metrics)
      if (key == name) return value;
    return std::nan("");
  };
  EXPECT_NEAR(run.watched.steps[0].loss, std::log(2.0), 1e-6);  // the reference equals the model
  EXPECT_NEAR(metric(0, "rewards/margins"), 0, 1e-5);
  EXPECT_GT(metric(11, "rewards/margins"), 0);
  EXPECT_LT(run.watched.steps[11].loss, std::log(2.0));
}

TEST(Trainer, ThePlanCountsWhatTheRunWillDo) {
  const TemporaryFolder folder;
  LogLines log;
  const Trainer trainer(small_run(folder.path()));
  const RunPlan& plan = trainer.plan();
  EXPECT_EQ(plan.examples, 13);
  EXPECT_EQ(plan.steps_in_epoch, 4);
  EXPECT_EQ(plan.steps, 8);
  EXPECT_EQ(plan.labels, plan.tokens - 13);
  EXPECT_EQ(plan.parameters, plan.trainable);
  EXPECT_EQ(plan.memory.optimizer, 8 * plan.parameters);
  EXPECT_EQ(plan.checkpoint_bytes, 12 * plan.parameters);
  EXPECT_NE(plan.text().find("/out/small; 3.1 MB each\n"), std::string::npos) << plan.text();
}

}  // namespace
}  // namespace easydel::train
