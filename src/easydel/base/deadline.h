// A time limit for work on a socket that does not block.
#pragma once

#include <optional>

#include "easydel/base/clock.h"

namespace easydel {

class Deadline {
 public:
  explicit Deadline(std::optional<double> seconds);  // null: no limit
  double left() const;                               // seconds, at least 0; meaningless without a limit
  // Waits until poll()'s `events` are there. False: the time is up.
  bool wait(int socket, short events) const;

 private:
  bool limited_;
  Clock::time_point end_;
};

}  // namespace easydel
