// Gives memory that requests have freed back to the system. The allocator keeps it for later: with glibc up to 64 MiB
// for each thread, and more once blocks of megabytes were freed, so that a server stays as large as its busiest moment.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>

#include "easydel/base/clock.h"

namespace easydel::server {

// Threads that start after this share one heap. Each would keep what is free at the end of its own, up to 64 MiB, which
// cannot be given back from outside.
void share_one_heap();

class FreedMemory {
 public:
  struct Process {
    std::function<size_t()> resident_bytes;
    std::function<void()> trim;
  };
  static Process this_process();

  explicit FreedMemory(Process process = this_process()) : process_(std::move(process)) {}

  // Called several times a second by one thread, which waits while memory is given back. `busy`: requests are in
  // progress. What is needed again soon should stay: memory goes back after two seconds without requests, or under
  // steady load every half minute, and only if the process has grown by 16 or 64 MiB since the last time.
  void look(bool busy, Clock::time_point now);

 private:
  Process process_;
  std::optional<size_t> floor_;  // resident bytes after the last time
  Clock::time_point last_busy_, last_measured_;
};

}  // namespace easydel::server
