// Who runs the parts of a kernel: the caller alone, a pool of our own, or torch's OpenMP pool. Results do not depend on
// it. Each executor owns its threads and what hold() has learned; scratch memory belongs to the thread that uses it.
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

  // Calls work(part) once for each part in [0, parts), on the caller and the pool, and returns when all are done. The
  // first exception of a part is rethrown here after the others are done. A run inside one of several parts of a pool
  // is done by that part's thread alone.
  template <class Work>
  void run(int64_t parts, Work&& work) {
    if (parts == 1) return work(int64_t(0));
    if (parts > 1)
      run_parts(
          parts, [](void* w, int64_t part) { (*static_cast<std::remove_reference_t<Work>*>(w))(part); },
          const_cast<void*>(static_cast<const void*>(&work)));
  }

  // Calls work() on this thread and keeps the pool ready for its many short runs: in between its threads spin and
  // prefetch the next weights. The OpenMP pool is not available to others, such as torch, meanwhile. Inside another
  // hold of this executor, or inside a part, it is a plain call.
  template <class Work>
  void hold(Work&& work) {
    hold_team([](void* w) { (*static_cast<std::remove_reference_t<Work>*>(w))(); },
              const_cast<void*>(static_cast<const void*>(&work)));
  }
  // Announces that the next run reads `bytes` at `data` once. The announcements of one hold() are remembered and
  // prefetched in that order during the next one: two generated tokens read the same weights. Only a hint.
  virtual void reads(const void*, int64_t) {}

 protected:
  using Call = void (*)(void* work, int64_t part);
  virtual void run_parts(int64_t parts, Call call, void* work) = 0;
  virtual void hold_team(void (*call)(void* work), void* work) { call(work); }
};

// The CPUs that this process may use, or OMP_NUM_THREADS if that is less.
int allowed_threads();

// The caller alone. One for the whole process.
Executor& serial_executor();

// torch's OpenMP pool of omp_get_max_threads() threads. One executor for the process, but OpenMP has a pool for each
// calling thread, so callers do not wait for each other.
Executor& openmp_executor();

// A pool of our own with `threads` - 1 workers, which spin for about 50 us after their last part, then sleep; one that
// keeps waking too late spins less. The caller never waits for a worker that has not begun a part, so a busy neighbor
// process costs only the CPU time it takes. Callers take turns; a hold() is one turn.
std::unique_ptr<Executor> make_pool(int threads = allowed_threads());

}  // namespace easydel::kernels
