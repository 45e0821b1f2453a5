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
  // Those of later steps belong to another run.
  for (const int step : {3, 4, 5}) checkpoints.save(step, write_something);
  EXPECT_EQ(names_in(folder.path()), (std::set<std::string>{"run-4", "run-5", "run-10", "run-11"}));
}

TEST(Checkpoints, ThoseThatCannotBeRemovedDoNotEndTheRun) {
  const TemporaryFolder folder;
  const Checkpoints checkpoints(folder.path(), 1);
  checkpoints.save(1, write_something);
  LogLines log;
  files::set_fault([&](files::Operation operation, const fs::path& path) {
    return operation == files::Operation::rename && path.string().find("run-1") != std::string::npos ? EACCES : 0;
  });
  checkpoints.save(2, write_something);
  files::set_fault(nullptr);
  EXPECT_TRUE(log.has("old checkpoints beyond save_total_limit could not be deleted: ")) << log.text;
  EXPECT_EQ(names_in(folder.path()), (std::set<std::string>{"run-1", "run-2"}));
  checkpoints.prune(2);
  EXPECT_EQ(names_in(folder.path()), (std::set<std::string>{"run-2"}));
}

TEST(Checkpoints, WhatABrokenSaveLeftIsRemovedAndAReplacementUndone) {
  const TemporaryFolder folder;
  const Checkpoints checkpoints(folder.path());
  checkpoints.save(1, write_something);
  test::write_file(folder / ".run-2.partial/a.txt", "a");
  test::write_file(folder / ".run-7.removed/a.txt", "a");
  test::write_file(folder / ".metrics.jsonl.4711.partial", "of a process that was killed");
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

TEST(Checkpoints, TheManifestHoldsWhatWasHandedOver) {
  const TemporaryFolder folder;
  const Checkpoints checkpoints(folder.path());
  checkpoints.save(1, write_something);
  checkpoints.save(2, [](const fs::path& aside) {
    write_something(aside);
    test::write_file(aside / "b.txt", "B");  // by another process, between our write and the manifest
  });
  EXPECT_EQ(defect_of(folder / "run-2"), "b.txt is not what was written (its hash is different)");
  LogLines log;
  EXPECT_EQ(checkpoints.newest(), folder / "run-1");
  EXPECT_NE(test::refusal([&] {
              checkpoints.save(3, [](const fs::path& aside) {
                write_something(aside);
                fs::remove(aside / "a.txt");
              });
            }).find("a.txt: was changed while it was saved"),
            std::string::npos);
  EXPECT_FALSE(fs::exists(folder / "run-3"));
}

TEST(Checkpoints, OneThatMissesWhatTheRunNeedsIsSkipped) {
  const TemporaryFolder folder;
  LogLines log;
  Trainer(small_run(folder.path(), "{max_training_steps: 2, save_steps: 1}")).run();
  const fs::path out = folder / "out/small";
  const std::string whole = test::read_file(out / "run-2/manifest.json");
  const Checkpoints checkpoints(out, std::nullopt, missing_in_state);
  const std::pair<const char*, const char*> needed[] = {
      {"config.json", "its manifest.json does not list config.json"},
      {"state.json", "its manifest.json does not list state.json"},
      {"model.safetensors", "its manifest.json does not list model.safetensors"},
      {"optimizer/optimizer-00001-of-00001.safetensors", "its manifest.json does not list the optimizer's state"}};
  for (const auto& [name, defect] : needed) {
    Value manifest = parse_json(whole);
    std::erase_if(manifest.find("files")->entries, [&, name = name](const auto& entry) { return entry.first == name; });
    test::write_file(out / "run-2/manifest.json", to_json(manifest));
    log.text.clear();
    EXPECT_EQ(checkpoints.newest(), out / "run-1") << name;
    EXPECT_TRUE(log.has(defect)) << log.text;
  }
  test::write_file(out / "run-2/manifest.json", whole);
  EXPECT_EQ(checkpoints.newest(), out / "run-2");
}

// Wherever the disk fails while checkpoints are looked for, the run refuses, or goes on from one that is good; it never
// begins anew.
TEST(Checkpoints, ADiskThatCannotBeReadIsNotAnEmptyFolder) {
  const TemporaryFolder folder;
  LogLines log;
  Trainer(small_run(folder.path(), "{max_training_steps: 2, save_steps: 1}")).run();
  const fs::path out = folder / "out/small";
  const std::string metrics = test::read_file(out / "metrics.jsonl");
  int refused = 0, failed = 0;
  for (int n = 1; n <= 60; ++n) {
    TrainerParts parts = small_run(folder.path(), "max_training_steps: 3");
    int count = 0;
    files::set_fault([&](files::Operation operation, const fs::path& path) {
      const bool counts = operation >= files::Operation::list && path.string().starts_with(out.string());
      return counts && ++count == n ? EIO : 0;
    });
    try {
      EXPECT_GT(Trainer(std::move(parts)).plan().from_step, 0) << "at " << n << "\n" << log.text;
    } catch (const UserError& error) {
      ++refused;
      EXPECT_NE(std::string(error.what()).find("Input/output error"), std::string::npos) << error.what();
    }
    files::set_fault(nullptr);
    EXPECT_EQ(test::read_file(out / "metrics.jsonl"), metrics);
    EXPECT_TRUE(fs::exists(out / "run-1")) << n;
    EXPECT_TRUE(fs::exists(out / "run-2")) << n;
    if (count < n) break;  // every operation has failed once
    ++failed;
  }
  EXPECT_GT(failed, 10);
  EXPECT_GT(refused, 1);
}

TEST(Checkpoints, NoneThatCanBeReadIsRefused) {
  const TemporaryFolder folder;
  const Checkpoints checkpoints(folder.path());
  checkpoints.save(1, write_something);
  LogLines log;
  files::set_fault([&](files::Operation operation, const fs::path& path) {
    return operation == files::Operation::look && path.filename() == "a.txt" ? EACCES : 0;
  });
  const std::string text = test::replaced(test::refusal([&] { checkpoints.newest(); }), folder.path().string(), "DIR");
  files::set_fault(nullptr);
  EXPECT_EQ(text,
            "DIR: no checkpoint in this folder can be read (DIR/run-1/a.txt: cannot open: Permission denied)\n    make "
            "them readable, name another save_directory, or set resume_if_possible: false to start anew");
}

TEST(Checkpoints, NamesThatLeadNowhereAreSkipped) {
  const TemporaryFolder folder;
  const Checkpoints checkpoints(folder.path(), 2);
  checkpoints.save(1, write_something);
  fs::create_symlink("run-5", folder / "run-5");
  test::write_file(folder / "run-4", "a file");
  LogLines log;
  EXPECT_EQ(checkpoints.newest(), folder / "run-1");
  EXPECT_TRUE(log.has("run-5/manifest.json: cannot open: Too many levels of symbolic links")) << log.text;
  EXPECT_TRUE(log.has("run-4: it has no manifest.json")) << log.text;
  checkpoints.save(5, write_something);
  EXPECT_EQ(checkpoints.newest(), folder / "run-5");
  EXPECT_EQ(names_in(folder.path()), (std::set<std::string>{"run-4", "run-5"}));
}

TEST(Checkpoints, AFolderIsTrainedInByOneRunAtATime) {
  const TemporaryFolder folder;
  LogLines log;
  const Trainer first(small_run(folder.path(), "max_training_steps: 1"));
  test::write_file(folder / "out/small/.run-1.partial/model.safetensors", "of the first");
  const std::string text =
      test::replaced(test::refusal([&] { Trainer(small_run(folder.path(), "max_training_steps: 1")); }),
                     folder.path().string(), "DIR");
  EXPECT_TRUE(text.starts_with(str("DIR/out/small: is in use by process ", getpid(), " on "))) << text;
  EXPECT_TRUE(text.ends_with("\n    wait until it has ended, or give this run another folder")) << text;
  EXPECT_TRUE(fs::exists(folder / "out/small/.run-1.partial/model.safetensors"));
}

// A process that is killed between two renames leaves what they made: the operations after the first ones throw.
TEST(Checkpoints, AKillWhileADivergedOneIsRenamedLeavesNoneToResume) {
  struct Killed {};
  int renames = 0;
  for (int n = 1;; ++n) {
    const TemporaryFolder folder;
    const Checkpoints checkpoints(folder.path());
    checkpoints.save(2, write_something);
    checkpoints.save_diverged(2, [](const fs::path& of) { files::write(of / "earlier.txt", "an earlier run's"); });
    int count = 0;
    files::set_fault([&](files::Operation operation, const fs::path&) {
      if (operation != files::Operation::look && ++count > n) throw Killed();
      return 0;
    });
    bool killed = false;
    try {
      checkpoints.rename_diverged(2);
    } catch (const Killed&) {
      killed = true;
    }
    files::set_fault(nullptr);
    if (!killed) break;
    ++renames;
    const bool begun = !fs::exists(folder / "run-2");
    const Checkpoints next(folder.path());
    next.tidy();
    EXPECT_EQ(next.newest().has_value(), !begun) << n;
    EXPECT_TRUE(fs::exists(folder / "run-2.diverged")) << n;
    for (const std::string& name : names_in(folder.path()))
      EXPECT_FALSE(name.starts_with(".run-")) << n << ": " << name;
  }
  EXPECT_GT(renames, 3);
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
    auto after = names_in(folder / "out/small");
    after.erase(".lock");  // the trainer above still holds the folder
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
