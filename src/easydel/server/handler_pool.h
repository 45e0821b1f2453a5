// A fixed number of threads and a bounded queue of work for them.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace easydel::server {

class HandlerPool {
 public:
  HandlerPool(size_t threads, size_t max_waiting);
  ~HandlerPool();  // finishes what is queued
  HandlerPool(const HandlerPool&) = delete;
  HandlerPool& operator=(const HandlerPool&) = delete;
  // False: the queue is full. `work` must not throw. Thread-safe.
  bool submit(std::function<void()> work);

 private:
  void run();
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> waiting_;
  size_t max_waiting_;
  bool ending_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace easydel::server
