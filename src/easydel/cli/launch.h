// Starts this program as several local ranks (easydel --nproc 2 ...) and watches the processes.
#pragma once

#include <string>
#include <vector>

namespace easydel::cli {

struct Launch {
  int ranks = 2;
  std::vector<std::string> arguments;  // for each rank, without --nproc
  std::string program;                 // empty: this program
  double grace_seconds = 10;           // between SIGTERM and SIGKILL, when ranks are stopped
};

// Whether a command besides `elarge` runs on several ranks. `name`: "easydel generate".
bool ranks_can(const std::string& name);

// Runs the ranks to their end and returns the exit status: 0, or that of the first rank that failed (128 + n for signal
// n). Each rank gets RANK, LOCAL_RANK, WORLD_SIZE, LOCAL_WORLD_SIZE, MASTER_ADDR (loopback) and MASTER_PORT (a free
// one); the cores are divided between them (OMP_NUM_THREADS, unless it is set). Rank 0 has this process's terminal; the
// stdout of the others is dropped, and their stderr is shown, each line after "[rank 1] ". When a rank fails, the
// others get SIGTERM, then SIGKILL. SIGINT, SIGTERM, SIGHUP and SIGPIPE are passed on. The ranks end with this process,
// however it ends. Call it on the main thread, before other threads exist. Throws UserError if the process was started
// by another launcher, or if processes cannot be started.
int launch(const Launch& options);

}  // namespace easydel::cli
