// A thread that does one piece of work at a time beside the thread that owns it.
#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace easydel::esurge {

class SideThread {
 public:
  SideThread();
  ~SideThread();  // finishes what was started
  SideThread(const SideThread&) = delete;
  SideThread& operator=(const SideThread&) = delete;

  // All on the owner's thread. Every start() is followed by finish() before the next one.
  void start(std::function<void()> work);
  // Returns when what was started is done, at once if nothing was.
  void wait();
  // wait(); then what it threw is thrown again.
  void finish();

 private:
  void run();

  std::mutex mutex_;  // of what follows
  std::condition_variable changed_;
  std::function<void()> work_;  // nothing: the thread rests
  std::exception_ptr error_;
  bool stopping_ = false;
  std::thread thread_;  // last: it uses the others
};

}  // namespace easydel::esurge
