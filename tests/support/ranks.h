// Runs a test's body on several ranks: forked processes that meet by a file. Fork before torch is used: a test binary
// that calls run_ranks keeps torch out of the parent process.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "easydel/mesh/world.h"
#include "support/data.h"

namespace easydel::test {

struct Meeting {
  mesh::World world;
  fs::path file;  // for TeamOptions::file_store
};

// The exit statuses of the ranks: 0 passed, 1 an expectation failed or something was thrown, 128 + n signal n.
// `seconds`: a rank that hangs is ended by SIGALRM.
inline std::vector<int> exits_of_ranks(int count, const std::function<void(const Meeting&)>& body, int seconds = 60) {
  TemporaryFolder folder;
  std::vector<pid_t> children;
  for (int rank = 0; rank < count; ++rank) {
    std::fflush(nullptr);
    pid_t child = fork();
    if (child == 0) {
      alarm(unsigned(seconds));
      setenv("OMP_NUM_THREADS", "1", 1);
      Meeting meeting;
      meeting.world.rank = meeting.world.local_rank = rank;
      meeting.world.size = meeting.world.local_size = count;
      meeting.file = folder / "store";
      int status = 0;
      try {
        body(meeting);
      } catch (const std::exception& error) {
        std::fprintf(stderr, "rank %d: %s\n", rank, error.what());
        status = 1;
      }
      std::fflush(nullptr);
      _exit(::testing::Test::HasFailure() ? 1 : status);
    }
    children.push_back(child);
  }
  std::vector<int> exits;
  for (pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    exits.push_back(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
  }
  return exits;
}

inline void run_ranks(int count, const std::function<void(const Meeting&)>& body, int seconds = 60) {
  EXPECT_EQ(exits_of_ranks(count, body, seconds), std::vector<int>(size_t(count), 0));
}

}  // namespace easydel::test
