// The serial executor and the team of our own.
#include "easydel/kernels/executor.h"

#include <sched.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <vector>

#include "easydel/base/error.h"
#include "easydel/kernels/executor_steps.h"

namespace easydel::kernels {

namespace {

class Serial final : public Executor {
 public:
  int size() const override { return 1; }

 private:
  void run_parts(int64_t parts, Call call, void* work) override {
    for (int64_t i = 0; i < parts; ++i) call(work, i);
  }
};

class Pool final : public Executor {
 public:
  explicit Pool(int threads) : steps_(threads) {
    for (int i = 1; i < threads; ++i) workers_.emplace_back([this, i] { steps_.serve(i); });
  }
  ~Pool() override {
    steps_.stop();
    for (std::thread& worker : workers_) worker.join();
  }
  int size() const override { return steps_.threads(); }

 private:
  void run_parts(int64_t parts, Call call, void* work) override {
    if (inside_a_part) {
      for (int64_t i = 0; i < parts; ++i) call(work, i);
      return;
    }
    const std::lock_guard one_caller(callers_);
    steps_.run(parts, call, work);
  }

  Steps steps_;
  std::vector<std::thread> workers_;
  std::mutex callers_;
};

}  // namespace

int allowed_threads() {
  cpu_set_t cpus;
  int count =
      sched_getaffinity(0, sizeof cpus, &cpus) == 0 ? CPU_COUNT(&cpus) : int(std::thread::hardware_concurrency());
  if (const char* const text = std::getenv("OMP_NUM_THREADS"); text && *text) {
    const int wanted = std::atoi(text);  // the first of a list: of teams that stand in no other
    if (wanted < 1) refuse("OMP_NUM_THREADS", str("'", text, "' is no number of threads"), "give 1 or more");
    count = std::min(count, wanted);
  }
  return std::max(count, 1);
}

Executor& serial_executor() {
  static Serial serial;
  return serial;
}

std::unique_ptr<Executor> make_pool(int threads) { return std::make_unique<Pool>(threads); }

}  // namespace easydel::kernels
