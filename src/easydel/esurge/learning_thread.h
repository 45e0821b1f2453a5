// Looks at the states of new constraints while the first pass of their request runs, so that their masks wait for less.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>

#include "easydel/text/constrain/constraint.h"

namespace easydel::esurge {

class LearningThread {
 public:
  LearningThread() = default;
  ~LearningThread();  // gives up what is not done
  LearningThread(const LearningThread&) = delete;
  LearningThread& operator=(const LearningThread&) = delete;

  // From any thread; the first call starts the thread, which yields to others. A constraint that nobody else holds any
  // more is left out.
  void add(std::weak_ptr<const text::constrain::Constraint> constraint);

 private:
  void run();

  std::mutex mutex_;  // of what follows, except stop_
  std::condition_variable changed_;
  std::deque<std::weak_ptr<const text::constrain::Constraint>> waiting_;
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

}  // namespace easydel::esurge
