// Ctrl-C, SIGTERM, SIGHUP and a closed stderr while training: the first asks the loop to stop, a second Ctrl-C or
// SIGTERM ends the process.
#pragma once

#include <atomic>

namespace easydel::train {

// Installs the handlers for its lifetime; the old ones come back with the destructor. One at a time. SIGHUP stays
// ignored where the process was started so (nohup).
class Interrupt {
 public:
  explicit Interrupt(bool speaks = true);  // prints a line to stderr when the first signal comes
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;
  int signal() const;  // the first that came; 0: none
  const std::atomic<bool>& has_come() const;
};

}  // namespace easydel::train
