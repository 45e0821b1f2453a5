// What a run that was stopped, killed or changed does when it is started again.
#include <gtest/gtest.h>

#include <cerrno>
#include <csignal>

#include "easydel/base/files.h"
#include "easydel/data/byte_stream.h"
#include "easydel/train/resume_changes.h"
#include "support/data.h"
#include "train/watched_run.h"

namespace easydel::train {
namespace {

namespace fs = std::filesystem;
using test::LogLines, test::list_files_anew, test::watched_run, test::shown, test::SignalAfter, test::small_run,
    test::TemporaryFolder, test::WatchedRun, test::weights_of;

std::string mixture_with_evaluation(const TemporaryFolder& folder) {
  test::write_file(folder / "held_out.txt", "Once upon a time there was a bird who had 9 red balls.\n");
  return str("{evaluation: [{data_files: \"", (folder / "held_out.txt").string(), "\"}]}");
}

std::vector<Value> records(const TemporaryFolder& folder) {
  std::vector<Value> out;
  data::for_each_line(folder / "out/small/metrics.jsonl", [&](std::string_view line, int64_t) {
    out.push_back(parse_json(line));
    return true;
  });
  return out;
}

TEST(Resume, MakesUpTheEvaluationAtTheStepThatStoppedTheRun) {
  const TemporaryFolder folder;
  LogLines log;
  const std::string keys = "{max_training_steps: 6, evaluation_steps: 2, eval_on_start: true}";
  const std::string mixture = mixture_with_evaluation(folder);
  const WatchedRun first = watched_run(small_run(folder.path(), keys, mixture), 4);
  EXPECT_EQ(first.outcome.signal, SIGTERM);
  EXPECT_EQ(first.watched.evaluations, (std::vector<int64_t>{0, 2}));
  const WatchedRun second = watched_run(small_run(folder.path(), keys, mixture));
  EXPECT_EQ(second.watched.evaluations, (std::vector<int64_t>{4, 6}));
  EXPECT_EQ(second.outcome.before->step, 0);
  EXPECT_EQ(second.outcome.before->loss, first.outcome.before->loss);
  std::vector<int64_t> evaluated;
  for (const Value& record : records(folder))
    if (record.find("eval_loss")) evaluated.push_back(*record.find("step")->as_int());
  EXPECT_EQ(evaluated, (std::vector<int64_t>{0, 2, 4, 6}));
}

TEST(Resume, MakesUpTheEndOfARunThatWasStoppedAtItsLastStep) {
  const TemporaryFolder folder;
  LogLines log;
  const std::string keys = "{max_training_steps: 3, do_eval: true, save_steps: 1, save_total_limit: 2}";
  const std::string mixture = mixture_with_evaluation(folder);
  const WatchedRun first = watched_run(small_run(folder.path(), keys, mixture), 3);
  EXPECT_EQ(first.outcome.signal, SIGTERM);
  EXPECT_TRUE(first.watched.evaluations.empty());
  EXPECT_FALSE(fs::exists(folder / "out/small/loss.svg"));
  // A process that was killed before it deleted the oldest.
  fs::copy(folder / "out/small/run-3", folder / "out/small/run-1", fs::copy_options::recursive);
  const WatchedRun second = watched_run(small_run(folder.path(), keys, mixture));
  EXPECT_TRUE(second.watched.reports.empty());
  EXPECT_EQ(second.watched.evaluations, (std::vector<int64_t>{3}));
  EXPECT_EQ(second.outcome.after->step, 3);
  EXPECT_TRUE(fs::exists(folder / "out/small/loss.svg"));
  EXPECT_FALSE(fs::exists(folder / "out/small/run-1"));
  const WatchedRun third = watched_run(small_run(folder.path(), keys, mixture));
  EXPECT_TRUE(third.watched.evaluations.empty()) << "it was made";
}

TEST(Resume, TheFirstRecordIsTheMeanSinceTheLastAndSecondsGoOn) {
  const TemporaryFolder whole, cut;
  LogLines log;
  const std::string keys = "{max_training_steps: 6, report_steps: 3}";
  watched_run(small_run(whole.path(), keys));
  watched_run(small_run(cut.path(), keys), 5);
  watched_run(small_run(cut.path(), keys));
  const auto straight = records(whole), resumed = records(cut);
  ASSERT_EQ(straight.size(), 3u);  // steps 1, 3, 6
  ASSERT_EQ(resumed.size(), 3u);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(resumed[i].find("loss")->as_double(), straight[i].find("loss")->as_double());
  EXPECT_GT(*resumed[2].find("seconds")->as_double(), *resumed[1].find("seconds")->as_double());
}

TEST(Resume, ADiskThatTakesNoMetricsDoesNotEndTheRun) {
  const TemporaryFolder folder;
  LogLines log;
  TrainerParts parts = small_run(folder.path(), "max_training_steps: 3");
  files::set_fault([](files::Operation operation, const fs::path& path) {
    const std::string name = path.filename().string();
    return operation == files::Operation::write && (name == "metrics.jsonl" || name == "loss.svg") ? EIO : 0;
  });
  const WatchedRun ended = watched_run(std::move(parts));
  files::set_fault(nullptr);
  EXPECT_TRUE(ended.outcome.finished);
  EXPECT_TRUE(fs::exists(folder / "out/small/run-3/model.safetensors"));
  EXPECT_TRUE(log.has("metrics.jsonl: cannot write: Input/output error; the run goes on without this record"));
  EXPECT_TRUE(log.has("the curves could not be written: ")) << log.text;
}

TEST(Resume, MetricsAreOnTheDiskBeforeTheCheckpoint) {
  const TemporaryFolder folder;
  LogLines log;
  TrainerParts parts = small_run(folder.path(), "{max_training_steps: 1, report_steps: 1}");
  std::vector<std::string> synced;
  files::set_fault([&](files::Operation operation, const fs::path& path) {
    if (operation == files::Operation::fsync) synced.push_back(path.filename().string());
    return 0;
  });
  watched_run(std::move(parts));
  files::set_fault(nullptr);
  const auto metrics = std::ranges::find(synced, "metrics.jsonl"),
             model = std::ranges::find(synced, "model.safetensors");
  ASSERT_NE(model, synced.end());
  EXPECT_LT(metrics, model);
}

class Stopping : public testing::TestWithParam<int> {
 protected:
  // A test that runs under nohup inherits that SIGHUP is ignored, which a run respects.
  void SetUp() override { before_ = std::signal(GetParam(), SIG_DFL); }
  void TearDown() override { std::signal(GetParam(), before_); }

 private:
  void (*before_)(int) = SIG_DFL;
};

TEST(Interrupts, NohupHolds) {
  const auto before = std::signal(SIGHUP, SIG_IGN);
  const TemporaryFolder folder;
  LogLines log;
  const WatchedRun ended = watched_run(small_run(folder.path(), "max_training_steps: 3"), 2, SIGHUP);
  std::signal(SIGHUP, before);
  EXPECT_EQ(ended.outcome.signal, 0);
  EXPECT_EQ(ended.outcome.step, 3);
}

TEST_P(Stopping, SavesAndGoesOnToTheBit) {
  const TemporaryFolder whole, cut;
  LogLines log;
  const WatchedRun straight = watched_run(small_run(whole.path(), "max_training_steps: 4"));
  const WatchedRun first = watched_run(small_run(cut.path(), "max_training_steps: 4"), 2, GetParam());
  EXPECT_EQ(first.outcome.signal, GetParam());
  EXPECT_EQ(first.outcome.step, 2);
  EXPECT_TRUE(fs::exists(cut / "out/small/run-2/manifest.json"));
  EXPECT_TRUE(watched_run(small_run(cut.path(), "max_training_steps: 4")).weights == straight.weights);
}

INSTANTIATE_TEST_SUITE_P(Signals, Stopping, testing::Values(SIGINT, SIGTERM, SIGHUP, SIGPIPE));

TEST(Stopping, ASignalDuringASaveCostsNoFurtherStep) {
  const TemporaryFolder folder;
  LogLines log;
  TrainerParts parts = small_run(folder.path(), "{max_training_steps: 6, save_steps: 2}");
  int saves = 0;
  files::set_fault([&](files::Operation operation, const fs::path& path) {
    if (operation != files::Operation::rename || path.filename() != "config.json") return 0;
    if (++saves == 1) raise(SIGTERM);
    return 0;
  });
  const WatchedRun ended = watched_run(std::move(parts));
  files::set_fault(nullptr);
  EXPECT_EQ(ended.outcome.signal, SIGTERM);
  EXPECT_EQ(ended.outcome.step, 2);
  EXPECT_EQ(ended.watched.reports.size(), 2u);
  EXPECT_EQ(saves, 1);
}

// The examples of another source, with a signal when those of a step are asked for.
class SignallingSource final : public BatchSource {
 public:
  SignallingSource(std::unique_ptr<BatchSource> rows, int64_t at) : rows_(std::move(rows)), at_(at) {}
  int64_t steps_in_epoch() const override { return rows_->steps_in_epoch(); }
  Value cursor(int64_t step) const override { return rows_->cursor(step); }
  std::string fingerprint() const override { return rows_->fingerprint(); }
  data::Dataset* dataset() override { return rows_->dataset(); }
  std::vector<MicroBatch> step(int64_t step) override {
    if (step == at_) raise(SIGTERM);
    return rows_->step(step);
  }

 private:
  std::unique_ptr<BatchSource> rows_;
  int64_t at_;
};

TEST(Stopping, ComesBetweenTheMicroBatchesOfAStep) {
  const TemporaryFolder whole, cut;
  LogLines log;
  const std::string keys = "{max_training_steps: 4, gradient_accumulation_steps: 2}";
  const auto run_from_source = [&](const TemporaryFolder& folder, int64_t at) {
    TrainerParts parts = small_run(folder.path(), keys);
    const auto rows = build_dataset(parts.trainer, parts.mixture, parts.tokenizer);
    WatchedRun out;
    parts.watcher = &out.watched;
    Trainer trainer(std::move(parts),
                    std::make_unique<SignallingSource>(std::make_unique<DatasetSource>(rows, 4, 2), at));
    out.outcome = trainer.run();
    out.weights = weights_of(trainer.model());
    return out;
  };
  const WatchedRun straight = run_from_source(whole, -1);
  const WatchedRun first = run_from_source(cut, 2);
  EXPECT_EQ(first.outcome.signal, SIGTERM);
  EXPECT_EQ(first.outcome.step, 2) << "the third was begun and is not made";
  EXPECT_TRUE(fs::exists(cut / "out/small/run-2"));
  EXPECT_TRUE(run_from_source(cut, -1).weights == straight.weights);

  const TemporaryFolder empty;
  const WatchedRun none = run_from_source(empty, 0);
  EXPECT_EQ(none.outcome.step, 0);
  EXPECT_TRUE(log.has("stopped by a signal after step 0 of 4; nothing was saved")) << log.text;
}

TEST(Stopping, DoesNotFinishAnEvaluation) {
  struct SignalWithinEvaluation : SignalAfter {
    using SignalAfter::SignalAfter;
    void worked(const Work& work) override {
      if (work.kind != Work::Kind::evaluation) return;
      if (++batches == 2) raise(SIGTERM);
    }
    int batches = 0;
  } watcher(0);
  const TemporaryFolder folder;
  LogLines log;
  std::string lines;
  for (int i = 0; i < 5; ++i) lines += str("There was a bird who had ", i, " red balls.\n");
  test::write_file(folder / "held_out.txt", lines);
  const std::string mixture = str("{evaluation: [{data_files: \"", (folder / "held_out.txt").string(), "\"}]}");
  const std::string keys = "{max_training_steps: 4, evaluation_steps: 2, eval_batch_size: 1}";
  TrainerParts parts = small_run(folder.path(), keys, mixture);
  parts.watcher = &watcher;
  const Outcome outcome = Trainer(std::move(parts)).run();
  EXPECT_EQ(watcher.batches, 2) << "three more were not computed";
  EXPECT_EQ(outcome.signal, SIGTERM);
  EXPECT_EQ(outcome.step, 2);
  EXPECT_TRUE(watcher.evaluations.empty());
  EXPECT_TRUE(fs::exists(folder / "out/small/run-2/manifest.json"));
  EXPECT_EQ(watched_run(small_run(folder.path(), keys, mixture)).watched.evaluations, (std::vector<int64_t>{2, 4}));
}

TEST(Resume, SaysWhichSettingsChanged) {
  const TemporaryFolder folder;
  LogLines log;
  watched_run(small_run(folder.path(), "{max_training_steps: 2}"));
  watched_run(small_run(folder.path(), "{max_training_steps: 3, learning_rate: 1e-4, weight_decay: 0, save_steps: 7}"));
  EXPECT_TRUE(
      log.has("settings that were different when it was saved: trainer.learning_rate 0.001 -> 1e-04, "
              "trainer.weight_decay 0.01 -> 0.0, trainer.max_training_steps 2 -> 3\n"))
      << log.text;
  log.text.clear();
  watched_run(small_run(folder.path(), "{max_training_steps: 3, learning_rate: 1e-5}"));
  EXPECT_TRUE(
      log.has("it was trained with other settings than this run's (trainer.learning_rate 1e-04 -> 1e-05, "
              "trainer.weight_decay 0.0 -> 0.01); to train anew, name another save_directory or model_name, or set "
              "resume_if_possible: false"))
      << log.text;
}

TEST(Resume, RefusesWhatCannotBeContinued) {
  const TemporaryFolder folder;
  LogLines log;
  watched_run(small_run(folder.path(), "{max_training_steps: 1}"));
  EXPECT_EQ(
      shown(folder,
            test::refusal([&] { watched_run(small_run(folder.path(), "{max_training_steps: 2, optimizer: lion}")); })),
      "DIR/out/small/run-1: it cannot be continued with other settings: trainer.optimizer adamw -> lion\n    name "
      "another save_directory or model_name, or set resume_if_possible: false to start anew");
  EXPECT_NE(test::refusal([&] {
              watched_run(small_run(folder.path(), "{max_training_steps: 2, frozen_parameters: embed}"));
            }).find("trainer.frozen_parameters null -> embed"),
            std::string::npos);
}

TEST(ResumeChanges, AnotherModelFolderIsAnotherModelUnlessItMoved) {
  const TemporaryFolder folder;
  test::write_file(folder / "a/model/config.json", "{}");
  test::write_file(folder / "b/model/config.json", "{}");
  const auto changes = [](const fs::path& before, const fs::path& now) {
    return resume_changes(parse_yaml("{model: {name_or_path: " + before.string() + "}}"),
                          parse_yaml("{model: {name_or_path: " + now.string() + "}}"));
  };
  EXPECT_EQ(changes(folder / "a/model", folder / "b/model").refused.size(), 1u);
  EXPECT_EQ(changes("Qwen/Qwen3-0.6B", "Qwen/Qwen3-4B").refused.size(), 1u);
  const ResumeChanges moved = changes(folder / "gone/model", folder / "b/model");
  EXPECT_TRUE(moved.refused.empty());
  EXPECT_EQ(moved.noted.size(), 1u);
  const ResumeChanges same = changes(folder / "a/model", folder / "a/../a/model");
  EXPECT_TRUE(same.refused.empty() && same.noted.empty());
}

// Makes a checkpoint one of an earlier version, without the history of its run.
void forget_history(const fs::path& checkpoint) {
  Value state = parse_file(checkpoint / "state.json");
  std::erase_if(state.entries,
                [](const auto& entry) { return entry.first == "history" || entry.first == "optimizer_state"; });
  test::write_file(checkpoint / "state.json", to_json(state, 2));
  list_files_anew(checkpoint);
}

// Checkpoints of earlier versions have the optimizer's file next to the model, and less in state.json.
TEST(Resume, AnOldCheckpointGoesOn) {
  const TemporaryFolder whole, cut;
  LogLines log;
  const WatchedRun straight = watched_run(small_run(whole.path(), "max_training_steps: 4"));
  watched_run(small_run(cut.path(), "max_training_steps: 4"), 2);
  const fs::path old = cut / "out/small/run-2", name = "optimizer-00001-of-00001.safetensors";
  fs::rename(old / "optimizer" / name, old / name);
  fs::remove(old / "optimizer");
  Value manifest = parse_file(old / "manifest.json");
  for (auto& [file, entry] : manifest.find("files")->entries)
    if (file == "optimizer/" + name.string()) file = name.string();
  test::write_file(old / "manifest.json", to_json(manifest, 2));
  forget_history(old);
  const WatchedRun resumed = watched_run(small_run(cut.path(), "max_training_steps: 4"));
  EXPECT_EQ(resumed.watched.reports.size(), 2u) << log.text;
  EXPECT_TRUE(resumed.weights == straight.weights);
}

// Such a checkpoint does not say whether the evaluation at its step was made; the metrics do, if there are any.
TEST(Resume, OfAnOldCheckpointMakesUpWhatItsMetricsDoNotHave) {
  LogLines log;
  for (const bool reports : {true, false})
    for (const bool stopped : {true, false}) {
      const TemporaryFolder folder;
      const std::string mixture = mixture_with_evaluation(folder);
      const auto keys = [&](int64_t steps) {
        return str("{evaluation_steps: 2, save_steps: 2, report_metrics: ", reports ? "true" : "false",
                   ", max_training_steps: ", steps, "}");
      };
      // A run that is stopped has not made the evaluation at that step; one that has ended has.
      watched_run(small_run(folder.path(), keys(stopped ? 4 : 2), mixture), stopped ? 2 : 0);
      forget_history(folder / "out/small/run-2");
      const WatchedRun resumed = watched_run(small_run(folder.path(), keys(4), mixture));
      EXPECT_EQ(resumed.watched.evaluations,
                reports && stopped ? (std::vector<int64_t>{2, 4}) : (std::vector<int64_t>{4}))
          << "with metrics: " << reports << ", stopped: " << stopped;
    }
}

}  // namespace
}  // namespace easydel::train
