// Distributes the tasks of one run after another over waiting threads. Covers how threads take tasks, how they wait and
// what they prefetch while they wait; the executors own the threads.
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

// True while this thread runs a task of some executor.
extern thread_local bool inside_task;

class InsideTask {
 public:
  InsideTask() : before_(inside_task) { inside_task = true; }
  ~InsideTask() { inside_task = before_; }
  InsideTask(const InsideTask&) = delete;
  InsideTask& operator=(const InsideTask&) = delete;

 private:
  bool before_;
};

// How long a thread spins before it sleeps: the whole window while spinning succeeds, less after longer waits.
class Spin {
 public:
  template <class Done>
  bool until(const Done& done) {
    const auto begin = Clock::now();
    while (Clock::now() - begin < window_)
      for (int i = 0; i < 32; ++i) {
        if (done()) return window_ = longest_window, true;
        __builtin_ia32_pause();
      }
    began_ = begin;
    return done();
  }
  // Call this after the sleep that followed an unsuccessful until().
  void woke() {
    window_ = Clock::now() - began_ < 2 * longest_window ? longest_window : std::max(window_ / 2, shortest_window);
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr Clock::duration longest_window = std::chrono::microseconds(50),
                                   shortest_window = std::chrono::microseconds(3);
  Clock::duration window_ = longest_window;
  Clock::time_point began_;
};

class TaskScheduler {
 public:
  using Call = void (*)(void* work, int64_t task);

  explicit TaskScheduler(int threads)
      : ranges_(new Range[size_t(threads)]), max_threads_(threads), threads_(threads), caller_prefetcher_(*this, 0) {}

  int max_threads() const { return max_threads_; }
  int threads() const { return threads_; }

  // Thread `thread` of `threads` takes tasks of each run until stop(). The others may come late, or not at all.
  void serve(int thread);
  void stop();
  // After a stop(), when all threads have left serve(): allows up to max_threads() threads again.
  void restart(int threads);

  // A hold() begins: will_read() is expected to repeat the order learned since the last rewind().
  void rewind();

  // Executor::run and Executor::will_read, called by thread 0. Each thread begins with a contiguous range of the tasks,
  // so that it mostly reads one stream of memory; a thread that is done continues with the next thread's range.
  void run(int64_t tasks, Call call, void* work);
  void will_read(const void* data, int64_t bytes);

 private:
  // A ticket holds the number of the run in its high half and the next task in its low half. Between two runs the low
  // half is `closed`, so that a thread that still looks at the old run cannot take a task of the new one.
  static constexpr uint64_t closed = 0xffffffff;
  struct alignas(64) Range {
    std::atomic<uint64_t> ticket{closed}, end{0};
  };
  struct Stream {
    const char* data = nullptr;
    int64_t bytes = 0;
  };
  // A stream that workers may prefetch. A mix of two streams' halves does no harm.
  struct SharedStream {
    std::atomic<const char*> data{nullptr};
    std::atomic<int64_t> bytes{0};
  };

  static constexpr size_t announced_streams = 4;

  // A waiting thread's position in the announced streams. Each thread prefetches its share of each stream, in total as
  // much as its L2 keeps.
  class Prefetcher {
   public:
    Prefetcher(const TaskScheduler& scheduler, int thread) : scheduler_(scheduler), thread_(thread) {}
    void prefetch_some();

   private:
    void open_stream();

    const TaskScheduler& scheduler_;
    int thread_;
    uint32_t announcement_ = 0;
    size_t stream_ = announced_streams;
    int64_t bytes_left_ = 0;
    const char *at_ = nullptr, *end_ = nullptr;
  };

  void take_tasks(int thread);
  void announce();  // the streams from position_ on

  std::unique_ptr<Range[]> ranges_;
  int max_threads_, threads_;
  uint64_t run_ = 0;
  Spin caller_spin_;
  Prefetcher caller_prefetcher_;
  Call call_ = nullptr;
  void* work_ = nullptr;
  std::mutex failure_mutex_;
  std::exception_ptr failure_;
  // Streams in the order they were read: before position_ since the last rewind(), from position_ on before it.
  std::vector<Stream> learned_;
  size_t position_ = 0;
  bool must_announce_ = false;
  SharedStream announced_[announced_streams];
  std::atomic<uint32_t> announcement_{0};
  alignas(64) std::atomic<uint32_t> runs_{0};
  alignas(64) std::atomic<int64_t> tasks_left_{0};
  std::atomic<bool> stop_{false};
};

}  // namespace easydel::kernels
