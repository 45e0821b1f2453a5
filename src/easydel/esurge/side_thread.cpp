#include "easydel/esurge/side_thread.h"

#include <utility>

#include "easydel/base/error.h"

namespace easydel::esurge {

SideThread::SideThread() : thread_([this] { run(); }) {}

SideThread::~SideThread() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

void SideThread::start(std::function<void()> work) {
  const std::lock_guard lock(mutex_);
  check(!work_ && !error_, "side thread: it is given work before the former is finished");
  work_ = std::move(work);
  changed_.notify_all();
}

void SideThread::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !work_; });
}

void SideThread::finish() {
  wait();
  const std::lock_guard lock(mutex_);
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

void SideThread::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return work_ || stopping_; });
    if (!work_) return;
    lock.unlock();
    std::exception_ptr error;
    try {
      work_();
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    work_ = nullptr;
    error_ = error;
    changed_.notify_all();
  }
}

}  // namespace easydel::esurge
