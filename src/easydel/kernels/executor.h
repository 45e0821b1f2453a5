// Who runs the tasks of a parallel kernel: the calling thread alone, a thread pool of our own, or torch's OpenMP pool.
// No kernel's result depends on the executor or on its number of threads.
//
// An executor owns what outlives a call: its threads, the distribution of tasks, and the order of weights that hold()
// has learned. Two executors share nothing. Scratch memory of kernels belongs to the thread that uses it (caller or
// worker) and is freed with it.
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>

namespace easydel::kernels {

class Executor {
 public:
  virtual ~Executor() = default;

  // Number of threads that can work at once, including the caller; at least 1.
  virtual int size() const = 0;

  // Calls work(task) once for each task in [0, tasks), on the caller and the pool's threads, and returns when all are
  // done. The first exception of a task is rethrown here after the other tasks are done. A run() inside a task of any
  // executor is done by that task's thread alone.
  template <class Work>
  void run(int64_t tasks, Work&& work) {
    if (tasks == 1) return work(int64_t(0));
    if (tasks > 1)
      run_tasks(
          tasks, [](void* w, int64_t task) { (*static_cast<std::remove_reference_t<Work>*>(w))(task); },
          const_cast<void*>(static_cast<const void*>(&work)));
  }

  // Calls work() on this thread and keeps the pool's threads ready for its many short run()s: in between they spin and
  // prefetch the weights that are read next. The OpenMP pool is not available to other users of it, such as torch,
  // during work(). Inside another hold() of this executor or inside a task this is a plain call.
  template <class Work>
  void hold(Work&& work) {
    hold_threads([](void* w) { (*static_cast<std::remove_reference_t<Work>*>(w))(); },
                 const_cast<void*>(static_cast<const void*>(&work)));
  }

  // Announces that the next run() reads `bytes` at `data` once. The executor remembers the announcements of one hold()
  // and prefetches in that order during the next one: two generated tokens read the same weights. Only a hint; ignored
  // outside hold().
  virtual void will_read(const void*, int64_t) {}

 protected:
  using Call = void (*)(void* work, int64_t task);
  virtual void run_tasks(int64_t tasks, Call call, void* work) = 0;
  virtual void hold_threads(void (*call)(void* work), void* work) { call(work); }
};

// Number of CPUs that this process may use, or OMP_NUM_THREADS if that is less.
int allowed_threads();

// The caller alone. One for the whole process.
Executor& serial_executor();

// torch's OpenMP pool, with omp_get_max_threads() threads. One executor for the process, but OpenMP gives every calling
// thread a pool of its own, and what hold() learns belongs to that pool. So callers on several threads do not wait for
// each other.
Executor& openmp_executor();

// A pool of our own with `threads` - 1 workers. A worker spins for about 50 us after its last task, then sleeps; one
// that keeps waking too late spins less. The caller never waits for a worker that has not begun a task, so a busy
// neighbour process costs only the CPU time it takes. Calls from several threads take turns; a hold() is one turn.
std::unique_ptr<Executor> make_pool(int threads = allowed_threads());

}  // namespace easydel::kernels
