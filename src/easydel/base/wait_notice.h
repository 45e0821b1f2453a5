// A log line about a wait that takes long.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace easydel {

// Logs `text` once, at every log level, if the object lives longer than `after`: "waiting for the other ranks at
// 127.0.0.1:29500".
class WaitNotice {
 public:
  explicit WaitNotice(std::string text, std::chrono::milliseconds after = std::chrono::seconds(3));
  ~WaitNotice();
  WaitNotice(const WaitNotice&) = delete;
  WaitNotice& operator=(const WaitNotice&) = delete;

 private:
  std::mutex mutex_;
  std::condition_variable over_;
  bool is_over_ = false;
  std::thread thread_;  // last: it uses the others
};

}  // namespace easydel
