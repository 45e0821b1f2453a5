// Who does the parts of a parallel step: the caller alone, a team of our own, or torch's OpenMP team. No kernel's
// result depends on which, nor on how many threads there are.
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>

namespace easydel::kernels {

class Executor {
 public:
  virtual ~Executor() = default;

  // Threads that can work at once, the caller among them; at least 1.
  virtual int size() const = 0;

  // Calls work(part) once for each part in [0, parts), on the caller and its team, and returns when all are done. Parts
  // are handed out in rising order as threads come free. What a part throws is thrown here after the others are done.
  // A run inside a part is done by that part's thread alone.
  template <class Work>
  void run(int64_t parts, Work&& work) {
    if (parts == 1) return work(int64_t(0));
    if (parts > 1)
      run_parts(
          parts, [](void* w, int64_t part) { (*static_cast<std::remove_reference_t<Work>*>(w))(part); },
          const_cast<void*>(static_cast<const void*>(&work)));
  }

  // Calls work() on this thread, with the team kept together for its many short steps: between them the threads wait in
  // a loop of ours, and ask for memory that is read next. Meanwhile other users of the team, such as torch, have this
  // thread alone. What work throws is thrown here. Inside of another hold, or of a part, it is a plain call.
  template <class Work>
  void hold(Work&& work) {
    hold_team([](void* w) { (*static_cast<std::remove_reference_t<Work>*>(w))(); },
              const_cast<void*>(static_cast<const void*>(&work)));
  }
  // The next step reads `bytes` at `data`, once. What the steps of one hold() read is remembered for the next one,
  // whose steps are often the same, as those of a generated token are.
  virtual void reads(const void*, int64_t) {}

 protected:
  using Call = void (*)(void* work, int64_t part);
  virtual void run_parts(int64_t parts, Call call, void* work) = 0;
  virtual void hold_team(void (*call)(void* work), void* work) { call(work); }
};

// The CPUs that this process may use, or OMP_NUM_THREADS if that is fewer.
int allowed_threads();

// The caller alone. One for the whole process.
Executor& serial_executor();

// The OpenMP team of the calling thread, shared with torch: as large as omp_get_max_threads() says. One for the
// process.
Executor& openmp_executor();

// A team of our own: `threads` - 1 workers that spin for about 50 us after their last step, then sleep; a worker that
// keeps waking too late spins less. The caller never waits for a worker that has not begun a part, so a busy neighbour
// costs only what it takes. Calls from several threads take turns.
std::unique_ptr<Executor> make_pool(int threads = allowed_threads());

}  // namespace easydel::kernels
