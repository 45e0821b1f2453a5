#include "easydel/esurge/learning_thread.h"

#include <sys/resource.h>

#include <exception>
#include <utility>

namespace easydel::esurge {

LearningThread::~LearningThread() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

void LearningThread::add(std::weak_ptr<const text::constrain::Constraint> constraint) {
  const std::lock_guard lock(mutex_);
  waiting_.push_back(std::move(constraint));
  if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
  changed_.notify_all();
}

void LearningThread::run() {
  constexpr int lower_priority = 10;
  setpriority(PRIO_PROCESS, 0, lower_priority);  // of this thread alone, on Linux
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return stop_ || !waiting_.empty(); });
    if (stop_) return;
    const std::weak_ptr<const text::constrain::Constraint> next = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    if (auto constraint = next.lock()) try {
        text::constrain::Matcher(std::move(constraint), text::TextPlace::inside).learn_ahead(stop_);
      } catch (const std::exception&) {
        // What fails here fails again in the mask that needs it, which says so.
      }
    lock.lock();
  }
}

}  // namespace easydel::esurge
