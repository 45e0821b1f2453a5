#include "easydel/cli/patient_threads.h"

#include <unistd.h>

#include <cstdlib>
#include <vector>

#include "easydel/base/names.h"

namespace easydel::cli {

namespace {

constexpr const char* variables[] = {"GOMP_SPINCOUNT", "OMP_WAIT_POLICY", "KMP_BLOCKTIME"};

}  // namespace

void wait_patiently(char** arguments) {
  for (const char* const name : variables)
    if (std::getenv(name)) return;
  setenv("GOMP_SPINCOUNT", "4000", 1);
  execv("/proc/self/exe", arguments);
}

std::string how_threads_wait() {
  std::vector<std::string> all;
  for (const char* const name : variables)
    if (const char* const value = std::getenv(name)) all.push_back(std::string(name) + "=" + value);
  return all.empty() ? "as OpenMP has it" : join(all, ", ");
}

}  // namespace easydel::cli
