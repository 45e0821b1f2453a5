// The day that templates see by strftime_now().
#pragma once

#include <cstdint>
#include <cstdlib>
#include <string>

namespace easydel::text {

// Seconds since 1970 at noon, so that every time zone has the same day; until the end of the scope.
class FixedDay {
 public:
  explicit FixedDay(int64_t seconds) { setenv("SOURCE_DATE_EPOCH", std::to_string(seconds).c_str(), 1); }
  ~FixedDay() { unsetenv("SOURCE_DATE_EPOCH"); }
  FixedDay(const FixedDay&) = delete;
  FixedDay& operator=(const FixedDay&) = delete;
};

}  // namespace easydel::text
