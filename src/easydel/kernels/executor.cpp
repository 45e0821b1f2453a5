// The serial executor and our own thread pool.
#include "easydel/kernels/executor.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <vector>

#include "easydel/base/error.h"
#include "easydel/kernels/task_scheduler.h"

namespace easydel::kernels {

namespace {

class Serial final : public Executor {
 public:
  int size() const override { return 1; }

 private:
  void run_tasks(int64_t tasks, Call call, void* work) override {
    for (int64_t i = 0; i < tasks; ++i) call(work, i);
  }
};

class Pool final : public Executor {
 public:
  explicit Pool(int threads) : scheduler_(threads) {
    for (int i = 1; i < threads; ++i) workers_.emplace_back([this, i] { scheduler_.serve(i); });
  }
  ~Pool() override {
    scheduler_.stop();
    for (std::thread& worker : workers_) worker.join();
  }
  int size() const override { return inside_task ? 1 : scheduler_.threads(); }
  void will_read(const void* data, int64_t bytes) override {
    if (held_by_this_thread() && !inside_task) scheduler_.will_read(data, bytes);
  }

 private:
  bool held_by_this_thread() const { return holder_.load(std::memory_order_relaxed) == std::this_thread::get_id(); }

  void run_tasks(int64_t tasks, Call call, void* work) override {
    if (inside_task) {
      for (int64_t i = 0; i < tasks; ++i) call(work, i);
      return;
    }
    std::unique_lock turn(turn_, std::defer_lock);
    if (!held_by_this_thread()) turn.lock();
    scheduler_.run(tasks, call, work);
  }

  void hold_threads(void (*call)(void* work), void* work) override {
    if (inside_task || held_by_this_thread() || size() == 1) return call(work);
    const std::lock_guard turn(turn_);
    const Holding holding(*this);
    scheduler_.rewind();
    call(work);
  }

  struct Holding {
    explicit Holding(Pool& held) : pool(held) { pool.holder_ = std::this_thread::get_id(); }
    ~Holding() { pool.holder_ = std::thread::id(); }
    Pool& pool;
  };

  TaskScheduler scheduler_;
  std::vector<std::thread> workers_;
  std::mutex turn_;
  std::atomic<std::thread::id> holder_{};  // the thread inside hold()
};

}  // namespace

int allowed_threads() {
  cpu_set_t cpus;
  int count =
      sched_getaffinity(0, sizeof cpus, &cpus) == 0 ? CPU_COUNT(&cpus) : int(std::thread::hardware_concurrency());
  if (const char* const text = std::getenv("OMP_NUM_THREADS"); text && *text) {
    const int requested = std::atoi(text);  // a list gives the numbers of nested pools; its first is the outermost
    if (requested < 1) refuse("OMP_NUM_THREADS", str("'", text, "' is not a number of threads"), "give 1 or more");
    count = std::min(count, requested);
  }
  return std::max(count, 1);
}

Executor& serial_executor() {
  static Serial serial;
  return serial;
}

std::unique_ptr<Executor> make_pool(int threads) { return std::make_unique<Pool>(threads); }

}  // namespace easydel::kernels
