// The steps of a team whose threads wait for them here: how parts are handed out, how threads wait, and what they read
// ahead meanwhile. Whose threads they are is the executors' business.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <vector>

namespace easydel::kernels {

// Whether this thread is inside a part of some Steps.
extern thread_local bool inside_a_part;

// How long a thread spins before it sleeps: the whole window while spinning pays, less after waits that were longer.
class Spin {
 public:
  template <class Done>
  bool until(const Done& done) {
    const auto begin = Clock::now();
    while (Clock::now() - begin < window_)
      for (int i = 0; i < 32; ++i) {
        if (done()) return window_ = longest, true;
        __builtin_ia32_pause();
      }
    began_ = begin;
    return done();
  }
  // After the sleep that followed a spin in vain.
  void woke() { window_ = Clock::now() - began_ < 2 * longest ? longest : std::max(window_ / 2, shortest); }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr Clock::duration longest = std::chrono::microseconds(50), shortest = std::chrono::microseconds(3);
  Clock::duration window_ = longest;
  Clock::time_point began_;
};

class Steps {
 public:
  using Call = void (*)(void* work, int64_t part);

  explicit Steps(int threads)
      : shares_(new Share[size_t(threads)]), most_(threads), threads_(threads), caller_ahead_(*this, 0) {}

  int most() const { return most_; }
  int threads() const { return threads_; }

  // Thread `thread` of `threads` does its parts of each step until stop(). The others may come late, or not at all.
  void serve(int thread);
  void stop();
  // Again behind a stop(), when all threads have left serve(); no more of them than at first.
  void restart(int threads);

  // Executor::run and Executor::reads, by thread 0. Each thread has a share of the parts, one behind the other; who is
  // through with its own goes on with those of the next thread. So what a thread reads from memory is mostly one
  // stream.
  void run(int64_t parts, Call call, void* work);
  void reads(const void* data, int64_t bytes);

 private:
  // A ticket holds the number of the step in its high half and the next part in its low half. Between two steps the low
  // half is `closed`, so that a thread which still looks at the old step cannot take a part of the new one.
  static constexpr uint64_t closed = 0xffffffff;
  struct alignas(64) Share {
    std::atomic<uint64_t> ticket{closed}, end{0};
  };
  struct Stream {
    const char* data = nullptr;
    int64_t bytes = 0;
  };
  struct Next {  // a stream that comes; one whose halves belong to two does no harm
    std::atomic<const char*> data{nullptr};
    std::atomic<int64_t> bytes{0};
  };

  static constexpr size_t seen_ahead = 4;

  // A waiting thread's place in what comes: its share of each stream, as much of them as its second cache keeps.
  class Ahead {
   public:
    Ahead(const Steps& steps, int thread) : steps_(steps), thread_(thread) {}
    void ask();

   private:
    void open();

    const Steps& steps_;
    int thread_;
    uint32_t told_ = 0;
    size_t stream_ = seen_ahead;
    int64_t left_ = 0;
    const char *at_ = nullptr, *end_ = nullptr;
  };

  void take_parts(int thread);
  void tell();  // what comes behind at_

  std::unique_ptr<Share[]> shares_;
  int most_, threads_;
  uint64_t step_ = 0;
  Spin caller_;
  Ahead caller_ahead_;
  Call call_ = nullptr;
  void* work_ = nullptr;
  std::mutex failures_;
  std::exception_ptr failure_;
  std::vector<Stream> order_;  // in which streams were read since restart(), and behind at_ before it
  size_t at_ = 0;
  bool news_ = false;
  Next next_[seen_ahead];
  std::atomic<uint32_t> told_{0};
  alignas(64) std::atomic<uint32_t> steps_{0};
  alignas(64) std::atomic<int64_t> left_{0};
  std::atomic<bool> stop_{false};
};

}  // namespace easydel::kernels
