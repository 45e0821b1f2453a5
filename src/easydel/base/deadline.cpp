#include "easydel/base/deadline.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>

namespace easydel {

Deadline::Deadline(std::optional<double> seconds) : limited_(seconds.has_value()) {
  if (seconds) end_ = Clock::now() + std::chrono::nanoseconds(int64_t(*seconds * 1e9));
}

double Deadline::left() const { return std::max(0.0, std::chrono::duration<double>(end_ - Clock::now()).count()); }

bool Deadline::wait(int socket, short events) const {
  for (;;) {
    pollfd watched = {socket, events, 0};
    const int ready = poll(&watched, 1, limited_ ? int(std::min(1e9, left() * 1e3)) + 1 : -1);
    if (ready > 0) return true;
    if (ready == 0 && left() == 0) return false;
    if (ready < 0 && errno != EINTR) return true;  // the next call on the socket says what is wrong
  }
}

}  // namespace easydel
