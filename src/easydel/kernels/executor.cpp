// The serial executor and the team of our own.
#include "easydel/kernels/executor.h"

#include <immintrin.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

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

thread_local bool inside_a_part = false;

using Clock = std::chrono::steady_clock;

// How long a thread spins before it sleeps: the whole window while spinning pays, less after waits that were longer.
class Spin {
 public:
  template <class Done>
  bool until(const Done& done) {
    const auto begin = Clock::now();
    while (Clock::now() - begin < window_)
      for (int i = 0; i < 32; ++i) {
        if (done()) return window_ = longest, true;
        _mm_pause();
      }
    began_ = begin;
    return done();
  }
  // After the sleep that followed a spin in vain.
  void woke() { window_ = Clock::now() - began_ < 2 * longest ? longest : std::max(window_ / 2, shortest); }

 private:
  static constexpr Clock::duration longest = std::chrono::microseconds(50), shortest = std::chrono::microseconds(3);
  Clock::duration window_ = longest;
  Clock::time_point began_;
};

class Pool final : public Executor {
 public:
  explicit Pool(int threads) {
    for (int i = 1; i < threads; ++i) workers_.emplace_back([this] { work(); });
  }
  ~Pool() override {
    stop_ = true;
    steps_.fetch_add(1);
    steps_.notify_all();
    for (std::thread& worker : workers_) worker.join();
  }
  int size() const override { return int(workers_.size()) + 1; }

 private:
  // tickets_ holds the number of the step in its high half and the next part in its low half. Between two steps the low
  // half is `closed`, so that a worker which still looks at the old step cannot take a part of the new one.
  static constexpr uint64_t closed = 0xffffffff;

  void run_parts(int64_t parts, Call call, void* what) override {
    if (inside_a_part || workers_.empty() || parts >= int64_t(closed)) {
      for (int64_t i = 0; i < parts; ++i) call(what, i);
      return;
    }
    const std::lock_guard one_caller(callers_);
    const uint64_t step = (tickets_.load(std::memory_order_relaxed) >> 32) + 1;
    tickets_.store(step << 32 | closed);
    call_ = call, work_ = what, failure_ = nullptr;
    left_.store(parts);
    parts_.store(uint64_t(parts));
    tickets_.store(step << 32);
    steps_.fetch_add(1);
    steps_.notify_all();  // no system call while nobody sleeps
    take_parts();
    if (!caller_.until([&] { return left_.load(std::memory_order_acquire) == 0; })) {
      for (int64_t left; (left = left_.load(std::memory_order_acquire)) != 0;) left_.wait(left);
      caller_.woke();
    }
    if (failure_) std::rethrow_exception(failure_);
  }

  void take_parts() {
    for (uint64_t ticket = tickets_.load();;) {
      const uint64_t part = ticket & closed;
      if (part >= parts_.load() || part == closed) return;
      if (!tickets_.compare_exchange_weak(ticket, ticket + 1)) continue;
      inside_a_part = true;
      try {
        call_(work_, int64_t(part));
      } catch (...) {
        const std::lock_guard one(failures_);
        if (!failure_) failure_ = std::current_exception();
      }
      inside_a_part = false;
      if (left_.fetch_sub(1, std::memory_order_acq_rel) == 1) left_.notify_one();
      ticket = tickets_.load();
    }
  }

  void work() {
    Spin spin;
    for (uint32_t seen = 0; !stop_;) {
      if (!spin.until([&] { return steps_.load(std::memory_order_acquire) != seen; })) {
        steps_.wait(seen);
        spin.woke();
      }
      seen = steps_.load(std::memory_order_acquire);
      take_parts();
    }
  }

  std::vector<std::thread> workers_;
  std::mutex callers_, failures_;
  Spin caller_;
  Call call_ = nullptr;
  void* work_ = nullptr;
  std::exception_ptr failure_;
  alignas(64) std::atomic<uint64_t> tickets_{closed};
  std::atomic<uint64_t> parts_{0};
  alignas(64) std::atomic<uint32_t> steps_{0};
  alignas(64) std::atomic<int64_t> left_{0};
  std::atomic<bool> stop_{false};
};

}  // namespace

int allowed_threads() {
  cpu_set_t cpus;
  int count =
      sched_getaffinity(0, sizeof cpus, &cpus) == 0 ? CPU_COUNT(&cpus) : int(std::thread::hardware_concurrency());
  if (const char* const text = std::getenv("OMP_NUM_THREADS")) {
    const int wanted = std::atoi(text);
    if (wanted > 0) count = std::min(count, wanted);
  }
  return std::max(count, 1);
}

Executor& serial_executor() {
  static Serial serial;
  return serial;
}

std::unique_ptr<Executor> make_pool(int threads) { return std::make_unique<Pool>(threads); }

}  // namespace easydel::kernels
