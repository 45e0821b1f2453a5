#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <thread>

#include "easydel/base/error.h"
#include "easydel/base/files.h"
#include "support/data.h"

namespace easydel::files {
namespace {

using test::refusal;

// Restores the disk after the test.
class FileStatus : public testing::Test {
 protected:
  ~FileStatus() override { set_fault({}); }
  std::string shown(const std::string& text) const { return test::replaced(text, folder_.path().string(), "DIR"); }
  test::TemporaryFolder folder_;
};

TEST_F(FileStatus, WhatIsNotThereIsAnAnswer) {
  test::write_file(folder_ / "a", "abc");
  EXPECT_TRUE(files::exists(folder_ / "a"));
  EXPECT_TRUE(is_file(folder_ / "a"));
  EXPECT_FALSE(is_folder(folder_ / "a"));
  EXPECT_TRUE(is_folder(folder_.path()));
  EXPECT_EQ(size(folder_ / "a"), 3u);
  EXPECT_FALSE(files::exists(folder_ / "b"));
  EXPECT_FALSE(files::exists(folder_ / "a/below a file"));
  EXPECT_FALSE(files::exists(""));
  EXPECT_TRUE(list(folder_ / "b").empty());
  ASSERT_EQ(symlink("nothing", (folder_ / "dangling").c_str()), 0);
  EXPECT_FALSE(files::exists(folder_ / "dangling"));
  EXPECT_TRUE(is_link(folder_ / "dangling"));
  EXPECT_EQ(link_target(folder_ / "dangling"), "nothing");
  EXPECT_EQ(link_target(folder_ / "a"), std::nullopt);
}

TEST_F(FileStatus, EveryOtherErrorIsSaidWithItsPath) {
  ASSERT_EQ(symlink("loop", (folder_ / "loop").c_str()), 0);
  const auto looks = {&files::exists, &is_file, &is_folder};
  for (const auto look : looks) {
    EXPECT_EQ(
        shown(refusal([&] { look(folder_ / "loop"); })),
        "DIR/loop: cannot open: Too many levels of symbolic links\n    links on this path lead back to themselves; "
        "remove one of them");
    EXPECT_EQ(shown(refusal([&] { look(folder_ / std::string(5000, 'n')); })),
              "DIR/" + std::string(5000, 'n') + ": cannot open: File name too long\n    give a shorter path");
  }
  EXPECT_EQ(shown(refusal([&] { size(folder_ / "b"); })),
            "DIR/b: cannot open: No such file or directory\n    check the path");
  test::write_file(folder_ / "a", "abc");
  EXPECT_EQ(shown(refusal([&] { list(folder_ / "a"); })), "DIR/a: cannot list this folder: Not a directory");
  set_fault([](Operation operation, const fs::path&) { return operation == Operation::list ? EMFILE : 0; });
  EXPECT_EQ(
      shown(refusal([&] { list(folder_.path()); })),
      "DIR: cannot list this folder: Too many open files\n    too many files are open; raise the limit (ulimit -n)");
  set_fault([](Operation operation, const fs::path&) { return operation == Operation::look ? EACCES : 0; });
  EXPECT_EQ(
      shown(refusal([&] { files::exists(folder_ / "a"); })),
      "DIR/a: cannot open: Permission denied\n    change its permissions, or those of a folder above it, or choose "
      "another path");
  EXPECT_NE(refusal([&] { files::remove_all(folder_ / "a"); }), "");
}

TEST_F(FileStatus, ListsFilesBelowWithoutEnteringLinks) {
  test::write_file(folder_ / "b/two", "");
  test::write_file(folder_ / "one", "");
  ASSERT_EQ(symlink("b", (folder_ / "link_to_folder").c_str()), 0);
  ASSERT_EQ(symlink("one", (folder_ / "link_to_file").c_str()), 0);
  EXPECT_EQ(list_files_below(folder_.path()), (std::vector<fs::path>{"b/two", "link_to_file", "one"}));
}

TEST_F(FileStatus, AFolderIsLockedByOneAtATime) {
  const fs::path run = folder_ / "runs/one";
  {
    const Lock lock(run / ".lock", run, "this run");
    const std::string text = shown(refusal([&] { Lock(run / ".lock", run, "this run"); }));
    EXPECT_TRUE(text.starts_with(str("DIR/runs/one: is in use by process ", getpid(), " on "))) << text;
    EXPECT_TRUE(text.ends_with("\n    wait until it has ended, or give this run another folder")) << text;
  }
  EXPECT_FALSE(files::exists(folder_ / "runs")) << "folders that were made for the lock";
  test::write_file(run / "kept", "");
  { const Lock lock(run / ".lock", run, "this run"); }
  EXPECT_EQ(list(run), (std::vector<fs::path>{run / "kept"}));
}

TEST_F(FileStatus, ALockNamesItsHolderThoughItHasJustBegun) {
  const int file = ::open((folder_ / ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  ASSERT_EQ(::flock(file, LOCK_EX), 0);
  std::thread holder([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    EXPECT_EQ(::pwrite(file, "process 1 on here\n", 18, 0), 18);
  });
  const std::string text = shown(refusal([&] { Lock(folder_ / ".lock", folder_.path(), "this run"); }));
  holder.join();
  EXPECT_TRUE(text.starts_with("DIR: is in use by process 1 on here\n")) << text;
  ::close(file);
}

TEST_F(FileStatus, TheLockOfAProcessThatWasKilledIsFree) {
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    const Lock lock(folder_ / ".lock", folder_.path(), "this run");
    if (::write(ready[1], "x", 1) == 1) pause();
    _exit(1);
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  close(ready[0]), close(ready[1]);
  const std::string text = refusal([&] { Lock(folder_ / ".lock", folder_.path(), "this run"); });
  EXPECT_NE(text.find(str("process ", child, " on ")), std::string::npos) << text;
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_TRUE(files::exists(folder_ / ".lock"));
  { const Lock lock(folder_ / ".lock", folder_.path(), "this run"); }
  EXPECT_FALSE(files::exists(folder_ / ".lock"));
}

TEST_F(FileStatus, ALineThatIsNotWrittenWholeIsTakenBack) {
  Appender log(folder_ / "log");
  log.line("one");
  int writes = 0;
  set_fault(
      [&](Operation operation, const fs::path&) { return operation == Operation::write && writes++ == 0 ? EIO : 0; });
  EXPECT_NE(refusal([&] { log.line("two"); }), "");
  log.line("three");
  log.sync();
  EXPECT_EQ(read(folder_ / "log"), "one\nthree\n");
}

}  // namespace
}  // namespace easydel::files
