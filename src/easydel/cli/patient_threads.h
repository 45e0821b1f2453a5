// Makes waiting threads sleep, so that a shared machine's time is not wasted.
#pragma once

#include <string>

namespace easydel::cli {

// By default OpenMP's threads spin for milliseconds at every barrier. If another process uses a core, each barrier then
// waits for the scheduler, and a run is tens of times slower. With this setting they spin for about 50 us and then
// sleep. libgomp reads it while it is loaded, before main(), so the program restarts itself with GOMP_SPINCOUNT set (2
// ms). If GOMP_SPINCOUNT, OMP_WAIT_POLICY or KMP_BLOCKTIME is set, nothing changes. Returns if nothing has to be done,
// or if the program cannot be restarted.
void wait_patiently(char** arguments);

// The variables that control how this process's threads wait, with their values.
std::string how_threads_wait();

}  // namespace easydel::cli
