#include "easydel/train/checkpoints.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <random>
#include <set>

#include "easydel/base/files.h"
#include "easydel/train/state_files.h"
#include "support/data.h"
#include "train/small_run.h"

namespace easydel::train {
namespace {

namespace fs = std::filesystem;
using test::LogLines;
using test::small_run;
using test::TemporaryFolder;

std::set<std::string> names_in(const fs::path& folder) {
  std::set<std::string> out;
  for (const auto& entry : fs::directory_iterator(folder)) out.insert(entry.path().filename().string());
  return out;
}

void write_something(const fs::path& folder) {
  files::write(folder / "a.txt", "a");
  files::write(folder / "b.txt", "b");
}

TEST(Checkpoints, ABrokenOneIsSkippedForTheLastGoodOneAndSaidSo) {
  const TemporaryFolder folder;
  const Checkpoints checkpoints(folder.path());
  for (const int step : {1, 2, 3, 4, 5}) checkpoints.save(step, write_something);
  test::write_file(folder / "run-5/b.txt", "B");
  test::write_file(folder / "run-4/b.txt", "too long");
  fs::remove(folder / "run-3/a.txt");
  fs::remove(folder / "run-2/manifest.json");
  LogLines log;
  EXPECT_EQ(checkpoints.newest(), folder / "run-1");
  EXPECT_EQ(test::replaced(log.text, folder.path().string(), "DIR"),
            "skipping checkpoint DIR/run-5: b.txt is not what was written (its hash is different)\nskipping checkpoint "
            "DIR/run-4: b.txt has 8 bytes, not 1\nskipping checkpoint DIR/run-3: a.txt is missing\nskipping checkpoint "
            "DIR/run-2: it has no manifest.json, so its save did not end\n");
}

TEST(Checkpoints, TheLimitKeepsTheNewest) {
  const TemporaryFolder folder;
  const Checkpoints checkpoints(folder.path(), 2);
  for (const int step : {2, 9, 10, 11}) checkpoints.save(step, write_something);
  EXPECT_EQ(names_in(folder.path()), (std::set<std::string>{"run-10", "run-11"}));
}

TEST(Checkpoints, WhatABrokenSaveLeftIsRemovedAndAReplacementUndone) {
  const TemporaryFolder folder;
  const Checkpoints checkpoints(folder.path());
  checkpoints.save(1, write_something);
  test::write_file(folder / ".run-2.partial/a.txt", "a");
  test::write_file(folder / ".run-7.removed/a.txt", "a");
  fs::rename(folder / "run-1", folder / ".run-1.old");
  LogLines log;
  checkpoints.tidy();
  EXPECT_EQ(names_in(folder.path()), (std::set<std::string>{"run-1"}));
  EXPECT_EQ(defect_of(folder / "run-1"), "");
}

TEST(Checkpoints, ASaveThatFailsGivesItsRoomBack) {
  const TemporaryFolder folder;
  const Checkpoints checkpoints(folder.path());
  EXPECT_EQ(test::refusal([&] {
              checkpoints.save(1, [](const fs::path& aside) {
                write_something(aside);
                refuse("disk", "is full");
              });
            }),
            "disk: is full");
  EXPECT_TRUE(names_in(folder.path()).empty());
}

// The disk fails at the n-th operation of a save, for every n: an earlier checkpoint or the new one always loads, and
// the next start finds no partial files.
TEST(Checkpoints, TheDiskMayFailAtAnyPointOfASave) {
  const TemporaryFolder folder;
  LogLines log;
  const auto run = [&](int64_t steps) {
    Trainer trainer(
        small_run(folder.path(), str("{max_training_steps: ", steps, ", save_total_limit: 1, report_metrics: false}")));
    trainer.run();
  };
  run(1);
  const TemporaryFolder good;
  fs::copy(folder.path(), good.path(), fs::copy_options::recursive | fs::copy_options::overwrite_existing);
  int failures = 0;
  for (int n = 1;; ++n) {
    fs::remove_all(folder / "out");
    fs::copy(good / "out", folder / "out", fs::copy_options::recursive);
    Trainer trainer(small_run(folder.path(), "{max_training_steps: 2, save_total_limit: 1, report_metrics: false}"));
    int count = 0;
    files::set_fault([&](files::Operation, const fs::path&) { return ++count == n ? ENOSPC : 0; });
    bool failed = false;
    try {
      trainer.run();
    } catch (const UserError& error) {
      failed = true;
      EXPECT_NE(std::string(error.what()).find("No space left on device"), std::string::npos) << error.what();
    }
    files::set_fault(nullptr);
    const Checkpoints checkpoints(folder / "out/small");
    checkpoints.tidy();
    const auto newest = checkpoints.newest();
    ASSERT_TRUE(newest.has_value()) << "after a failure at operation " << n;
    const auto after = names_in(folder / "out/small");
    for (const std::string& name : after) EXPECT_TRUE(name.starts_with("run-")) << name << " after " << n;
    models::load_model(*newest, {});
    if (count < n) break;  // the whole save went through
    failures += failed;
  }
  EXPECT_GT(failures, 20);
}

// Runs in a child process, started by the test below.
TEST(KilledChild, DISABLED_Trains) {
  const char* folder = std::getenv("EASYDEL_TEST_KILLED_FOLDER");
  ASSERT_NE(folder, nullptr);
  LogLines log;
  Trainer(small_run(folder, "{max_training_steps: 12, save_steps: 1, save_total_limit: 3, scheduler: linear}")).run();
}

test::Ran child(const fs::path& folder, const std::string& fault, int kill_after_milliseconds) {
  std::vector<std::string> command{fs::read_symlink("/proc/self/exe").string(), "--gtest_also_run_disabled_tests",
                                   "--gtest_filter=KilledChild.DISABLED_Trains"};
  if (kill_after_milliseconds > 0) {
    char seconds[32];
    std::snprintf(seconds, sizeof seconds, "%.3f", kill_after_milliseconds / 1000.0);
    command.insert(command.begin(), {"timeout", "-s", "KILL", seconds});
  }
  test::RunOptions options;
  options.environment = {{"EASYDEL_TEST_KILLED_FOLDER", folder.string()}, {"OMP_NUM_THREADS", "1"}};
  if (!fault.empty()) options.environment.emplace_back("EASYDEL_FAULT", fault);
  return test::run(command, options);
}

TEST(Checkpoints, ARunThatIsKilledThirtyTimesEndsWithTheSameBytes) {
  const TemporaryFolder straight, killed;
  ASSERT_EQ(child(straight.path(), "", 0).status, 0);
  const std::string want = test::read_file(straight / "out/small/run-12/model.safetensors");

  std::mt19937 random(20261121);
  int kills = 0, runs = 0, finished = 0;
  while (kills < 30 && runs < 90) {
    ++runs;
    // Every other time at a random operation on the disk (most are inside a save), else at a random moment.
    const bool inside = runs % 2 == 0;
    const auto ended = inside ? child(killed.path(), str("any:", 1 + random() % 60, ":kill"), 0)
                              : child(killed.path(), "", 30 + static_cast<int>(random() % 700));
    if (ended.status != 0) {
      EXPECT_EQ(ended.status, 137) << ended.out << ended.err;
      ++kills;
      continue;
    }
    ++finished;
    EXPECT_TRUE(test::read_file(killed / "out/small/run-12/model.safetensors") == want)
        << "after " << kills << " kills";
    fs::remove_all(killed / "out");
  }
  EXPECT_EQ(kills, 30);
  ASSERT_EQ(child(killed.path(), "", 0).status, 0);
  EXPECT_TRUE(test::read_file(killed / "out/small/run-12/model.safetensors") == want);
  std::printf("%d runs, %d killed, %d ended on their own\n", runs + 1, kills, finished + 1);
}

}  // namespace
}  // namespace easydel::train
