// The launcher of local ranks, tried with shells in place of the program.
#include "easydel/cli/launch.h"

#include <sys/wait.h>
#include <unistd.h>

#include <fcntl.h>
#include <csignal>

#include <gtest/gtest.h>

#include "support/data.h"

namespace easydel::cli {
namespace {

// A launcher in a child process, with its output in files.
class Launched {
 public:
  Launched(int ranks, const std::string& script, double grace_seconds = 10) {
    pid_ = fork();
    if (pid_ != 0) return;
    alarm(60);
    for (auto [name, target] : {std::pair("out", STDOUT_FILENO), std::pair("err", STDERR_FILENO)}) {
      dup2(open((folder_ / name).c_str(), O_CREAT | O_WRONLY | O_APPEND, 0600), target);
    }
    for (const char* name : {"RANK", "WORLD_SIZE", "OMP_NUM_THREADS", "EASYDEL_LOG"}) unsetenv(name);
    int status = 99;
    try {
      status = launch({ranks, {"-c", script, "sh", folder_.path().string()}, "/bin/sh", grace_seconds});
    } catch (const std::exception&) {
    }
    _exit(status);
  }
  int wait() const {
    int status = 0;
    waitpid(pid_, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  pid_t pid() const { return pid_; }
  std::string read(const char* name) const { return test::read_file(folder_ / name); }
  bool has(const char* name) const { return test::fs::exists(folder_ / name); }
  void wait_for(const char* name) const {
    while (!has(name)) usleep(2000);
  }

 private:
  test::TemporaryFolder folder_;
  pid_t pid_ = -1;
};

TEST(Launch, TellsEachRankWhoItIs) {
  Launched run(3,
               "echo $RANK $LOCAL_RANK $WORLD_SIZE $LOCAL_WORLD_SIZE $MASTER_ADDR ${OMP_NUM_THREADS:+threads} "
               "> $1/is$RANK; echo $MASTER_PORT > $1/port$RANK");
  EXPECT_EQ(run.wait(), 0);
  EXPECT_EQ(run.read("is0"), "0 0 3 3 127.0.0.1 threads\n");
  EXPECT_EQ(run.read("is1"), "1 1 3 3 127.0.0.1 threads\n");
  EXPECT_EQ(run.read("is2"), "2 2 3 3 127.0.0.1 threads\n");
  EXPECT_EQ(run.read("port0"), run.read("port2"));
  EXPECT_GT(std::stoi(run.read("port0")), 0);
}

TEST(Launch, ShowsRankZeroAndTheOthersErrorsWithTheirRank) {
  Launched run(2, "echo out of $RANK; echo err of $RANK >&2; printf 'half a line of %s' $RANK >&2");
  EXPECT_EQ(run.wait(), 0);
  EXPECT_EQ(run.read("out"), "out of 0\n");
  std::string err = run.read("err");
  EXPECT_NE(err.find("err of 0\n"), std::string::npos) << err;
  EXPECT_NE(err.find("[rank 1] err of 1\n"), std::string::npos) << err;
  EXPECT_NE(err.find("[rank 1] half a line of 1\n"), std::string::npos) << err;
}

TEST(Launch, EndsTheOthersWhenARankFails) {
  Launched run(3, "if [ $RANK = 1 ]; then exit 5; fi; exec sleep 50");
  EXPECT_EQ(run.wait(), 5);
  EXPECT_EQ(run.read("err"), "easydel: rank 1 of 3 failed with exit status 5; the other ranks were stopped, too\n");
}

TEST(Launch, KillsARankThatDoesNotHearSigterm) {
  Launched run(2,
               "if [ $RANK = 1 ]; then while [ ! -e $1/deaf ]; do sleep 0.01; done; kill -ABRT $$; fi; "
               "trap '' TERM; : > $1/deaf; while :; do sleep 0.05; done",
               0.2);
  EXPECT_EQ(run.wait(), 128 + SIGABRT);
  EXPECT_EQ(run.read("err"),
            "easydel: rank 1 of 2 was killed by signal 6 (Aborted); the other ranks were stopped, too\n");
}

TEST(Launch, PassesSigtermOnAndWaitsForTheRanks) {
  Launched run(2, "trap ': > $1/saved$RANK; exit 3' TERM; : > $1/ready$RANK; while :; do sleep 0.01; done");
  run.wait_for("ready0");
  run.wait_for("ready1");
  kill(run.pid(), SIGTERM);
  EXPECT_EQ(run.wait(), 3);
  EXPECT_TRUE(run.has("saved0"));
  EXPECT_TRUE(run.has("saved1"));
  EXPECT_EQ(run.read("err"), "");  // no rank failed
}

TEST(Launch, LeavesNoRankBehindWhenItIsKilled) {
  Launched run(2, "echo $$ > $1/half$RANK; mv $1/half$RANK $1/pid$RANK; exec sleep 50");
  run.wait_for("pid0");
  run.wait_for("pid1");
  kill(run.pid(), SIGKILL);
  EXPECT_EQ(run.wait(), 128 + SIGKILL);
  for (const char* name : {"pid0", "pid1"}) {
    pid_t pid = std::stoi(run.read(name));
    // Gone, or a zombie that init has not collected yet.
    auto gone = [&] {
      if (kill(pid, 0) != 0) return true;
      std::string stat = test::fs::exists("/proc/" + std::to_string(pid) + "/stat")
                             ? test::read_file("/proc/" + std::to_string(pid) + "/stat")
                             : ") Z";
      return stat.find(") Z") != std::string::npos;
    };
    for (int i = 0; i < 500 && !gone(); ++i) usleep(10000);
    EXPECT_TRUE(gone()) << name;
  }
}

TEST(Launch, RefusesInsideAnotherLaunch) {
  setenv("RANK", "0", 1);
  EXPECT_EQ(test::refusal([] {
              launch({2, {}, "/bin/true", 1});
            }),
            "--nproc: this process is already a rank (RANK or WORLD_SIZE is set)\n    remove --nproc under torchrun, "
            "or unset RANK and WORLD_SIZE");
  unsetenv("RANK");
}

}  // namespace
}  // namespace easydel::cli
