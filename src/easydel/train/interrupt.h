// Ctrl-C and SIGTERM while training: the first asks the loop to stop after its step, the second ends the process.
#pragma once

namespace easydel::train {

// Installs the handlers for its lifetime; the old ones come back with the destructor. One at a time.
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;
  int signal() const;  // the first that came; 0: none
};

}  // namespace easydel::train
