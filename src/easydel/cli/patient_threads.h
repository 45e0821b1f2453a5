// Threads that wait without burning a shared machine's time.
#pragma once

#include <string>

namespace easydel::cli {

// OpenMP's threads spin for milliseconds at every barrier unless told otherwise; where another process has a core, each
// barrier then waits for a turn of the scheduler, and a run is tens of times slower. They are to spin for about 50 us
// and sleep then. libgomp reads such settings while it is loaded, before main(), so the program starts itself again
// with GOMP_SPINCOUNT set (2 ms); where that, OMP_WAIT_POLICY or KMP_BLOCKTIME is set, what was chosen stays.
// Returns where nothing is to be done or the program cannot be started again.
void wait_patiently(char** arguments);

// The variables that say how this process's threads wait, with their values.
std::string how_threads_wait();

}  // namespace easydel::cli
