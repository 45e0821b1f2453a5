// The clock by which durations are measured; the time of day is not its business.
#pragma once

#include <chrono>

namespace easydel {

using Clock = std::chrono::steady_clock;

inline double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

}  // namespace easydel
