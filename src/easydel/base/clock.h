// The clock for measuring durations, not for the time of day.
#pragma once

#include <chrono>

namespace easydel {

using Clock = std::chrono::steady_clock;

inline double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

}  // namespace easydel
