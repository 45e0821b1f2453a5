#include "easydel/cli/patient_threads.h"

#include <unistd.h>

#include <cstdlib>
#include <initializer_list>

namespace easydel::cli {

void wait_patiently(char** arguments) {
  for (const char* name : {"GOMP_SPINCOUNT", "OMP_WAIT_POLICY", "KMP_BLOCKTIME"})
    if (std::getenv(name)) return;
  setenv("GOMP_SPINCOUNT", "4000", 1);
  execv("/proc/self/exe", arguments);
}

}  // namespace easydel::cli
