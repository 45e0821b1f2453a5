// Runs a test's body on several ranks: forked processes that meet by a file. Only the bodies use torch: a process
// that has started torch's threads cannot be forked.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "easydel/base/log.h"
#include "easydel/mesh/world.h"
#include "support/data.h"

namespace easydel::test {

struct Meeting {
  mesh::World world;
  fs::path file;  // for TeamOptions::file_store
};

// How many expectations of the running test have failed so far.
inline int failures() {
  const auto* result = ::testing::UnitTest::GetInstance()->current_test_info()->result();
  int count = 0;
  for (int i = 0; i < result->total_part_count(); ++i) count += result->GetTestPartResult(i).failed();
  return count;
}

// The exit statuses of the ranks: 0 passed, 1 an expectation failed or something was thrown, 128 + n signal n.
// `seconds`: a rank that hangs is ended by SIGALRM.
inline std::vector<int> exits_of_ranks(int count, const std::function<void(const Meeting&)>& body, int seconds = 60) {
  // OpenMP reads it when the binary starts, and ranks whose threads wait for a core by spinning take minutes.
  const char* threads = std::getenv("OMP_NUM_THREADS");
  if (!threads || std::string(threads) != "1") {
    ADD_FAILURE() << "tests with ranks need OMP_NUM_THREADS=1 in the environment, as ctest sets it";
    return {};
  }
  TemporaryFolder folder;
  std::vector<pid_t> children;
  for (int rank = 0; rank < count; ++rank) {
    std::fflush(nullptr);
    pid_t child = fork();
    if (child == 0) {
      alarm(unsigned(seconds));
      Meeting meeting;
      meeting.world.rank = meeting.world.local_rank = rank;
      meeting.world.size = meeting.world.local_size = count;
      meeting.file = folder / "store";
      int status = 0;
      const int before = failures();
      log::set_level(log::Level::error);  // each rank would log it
      try {
        body(meeting);
      } catch (const std::exception& error) {
        std::fprintf(stderr, "rank %d: %s\n", rank, error.what());
        status = 1;
      }
      std::fflush(nullptr);
      _exit(failures() > before ? 1 : status);
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
