#include "easydel/server/freed_memory.h"

#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

namespace easydel::server {
namespace {

constexpr double quiet_seconds = 2, measure_seconds = 1, loaded_seconds = 30;
// Pages that are given back cost a fault each when they are needed again, so a few are left alone.
constexpr size_t quiet_growth = 16 << 20, loaded_growth = 64 << 20;

}  // namespace

void share_one_heap() { ::mallopt(M_ARENA_MAX, 1); }

FreedMemory::Process FreedMemory::this_process() {
  return {.resident_bytes =
              [] {
                size_t all = 0, resident = 0;
                std::ifstream("/proc/self/statm") >> all >> resident;
                return resident * size_t(::sysconf(_SC_PAGESIZE));
              },
          .trim = [] { ::malloc_trim(0); }};
}

void FreedMemory::look(bool busy, Clock::time_point now) {
  const auto passed = [now](Clock::time_point since) { return std::chrono::duration<double>(now - since).count(); };
  if (busy) last_busy_ = now;
  const bool quiet = passed(last_busy_) >= quiet_seconds;
  if (floor_ && passed(last_measured_) < (quiet ? measure_seconds : loaded_seconds)) return;
  last_measured_ = now;
  const size_t resident = process_.resident_bytes();
  floor_ = std::min(floor_.value_or(resident), resident);
  if (resident < *floor_ + (quiet ? quiet_growth : loaded_growth)) return;
  process_.trim();
  floor_ = process_.resident_bytes();
}

}  // namespace easydel::server
