// Runs whose weights or losses are not finite: what is kept of them, and what the next run goes on from.
#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "train/watched_run.h"

namespace easydel::train {
namespace {

namespace fs = std::filesystem;
using test::LogLines, test::list_files_anew, test::watched_run, test::shown, test::small_run, test::TemporaryFolder,
    test::WatchedRun;

// A rate that is far too high leaves weights that are finite and useless; nothing is resumed from them, and a sane
// rate helps.
TEST(Divergence, IsNotResumedFrom) {
  for (const char* const save : {"save_steps: null", "save_steps: 1"}) {
    SCOPED_TRACE(save);
    const TemporaryFolder folder;
    LogLines log;
    const std::string text =
        shown(folder, test::refusal([&] {
                watched_run(small_run(
                    folder.path(), str("{learning_rate: 1e30, clip_grad: null, max_training_steps: 5, ", save, "}")));
              }));
    EXPECT_TRUE(text.starts_with("step 2: the loss is ") || text.starts_with("step 1: the weights are not finite"))
        << text;
    EXPECT_FALSE(fs::exists(folder / "out/small/run-1"));
    const WatchedRun sane = watched_run(small_run(folder.path(), "{learning_rate: 1e-4, max_training_steps: 3}"));
    EXPECT_EQ(sane.watched.reports.size(), 3u);
    EXPECT_TRUE(sane.outcome.finished);
  }
}

TEST(Divergence, KeepsTheStateBeforeUnderAnotherName) {
  const TemporaryFolder folder;
  LogLines log;
  const auto text = [&](const std::string& more) {
    return shown(folder, test::refusal([&] {
                   watched_run(small_run(folder.path(),
                                         "{learning_rate: 1e30, clip_grad: null, max_training_steps: 40" + more + "}"));
                 }));
  };
  const std::string first = text("");
  EXPECT_NE(first.find("; the next run starts anew; the state before this step is kept in DIR/out/small/run-"),
            std::string::npos)
      << first;
  EXPECT_TRUE(first.ends_with(".diverged")) << first;
  const std::string second = text(", save_steps: 1");
  EXPECT_TRUE(second.ends_with(".diverged")) << second;
}

TEST(Divergence, WeightsAreLookedAtBeforeASaveAndAfterALoad) {
  const TemporaryFolder folder;
  LogLines log;
  const auto spoil = [](models::Model& model) {
    const c10::AutoGradMode no_grad(false);
    model.parameters().find("model.layers.2.mlp.up_proj.weight")->shard.view(-1)[7] =
        std::numeric_limits<float>::quiet_NaN();
  };
  TrainerParts loaded = small_run(folder.path());
  spoil(*loaded.model);
  EXPECT_NE(test::refusal([&] {
              Trainer(std::move(loaded));
            }).find("stories260K-hf: model.layers.2.mlp.up_proj.weight holds values that are not finite"),
            std::string::npos);

  struct Spoiling : Watcher {
    void stepped(const StepReport& report) override {
      if (report.step == 2) spoil(*model);
    }
    std::function<void(models::Model&)> spoil;
    models::Model* model = nullptr;
  } spoiling;
  TrainerParts parts = small_run(folder.path(), "{max_training_steps: 4, save_steps: 1}");
  spoiling.spoil = spoil, spoiling.model = parts.model.get();
  parts.watcher = &spoiling;
  EXPECT_EQ(test::refusal([&] { Trainer(std::move(parts)).run(); }),
            "step 2: the weights are not finite (model.layers.2.mlp.up_proj.weight), so they are not saved\n    lower "
            "learning_rate, set clip_grad, or check the data");
  EXPECT_TRUE(fs::exists(folder / "out/small/run-1"));
  EXPECT_FALSE(fs::exists(folder / "out/small/run-2"));
}

// A checkpoint that is whole by its manifest, with weights that are not finite: of an earlier version, or from
// elsewhere.
TEST(Divergence, ACheckpointWithSuchWeightsIsPutAsideByTheNextRun) {
  const TemporaryFolder folder;
  LogLines log;
  const std::string keys = "{max_training_steps: 3, save_steps: 1}";
  watched_run(small_run(folder.path(), keys), 2);
  const fs::path spoiled = folder / "out/small/run-2";
  std::string weights = test::read_file(spoiled / "model.safetensors");
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::memcpy(weights.data() + weights.size() - sizeof nan, &nan, sizeof nan);
  test::write_file(spoiled / "model.safetensors", weights);
  list_files_anew(spoiled);
  EXPECT_EQ(
      shown(folder, test::refusal([&] { watched_run(small_run(folder.path(), keys)); })),
      "DIR/out/small/run-2: model.norm.weight holds values that are not finite (NaN or infinity): the run had "
      "diverged\n    it was renamed to DIR/out/small/run-2.diverged; run again to go on from the checkpoint before "
      "it, or to start anew");
  EXPECT_FALSE(fs::exists(spoiled));
  EXPECT_TRUE(fs::exists(folder / "out/small/run-2.diverged/manifest.json"));
  const WatchedRun ended = watched_run(small_run(folder.path(), keys));
  EXPECT_TRUE(log.has("going on from " + (folder / "out/small/run-1").string() + " (1 of 3 steps)")) << log.text;
  EXPECT_TRUE(ended.outcome.finished);
}

}  // namespace
}  // namespace easydel::train
