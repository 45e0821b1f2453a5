// The executor on torch's OpenMP pool; the one file that needs -fopenmp.
#include <omp.h>

#include <exception>

#include "easydel/kernels/executor.h"
#include "easydel/kernels/task_scheduler.h"

namespace easydel::kernels {

namespace {

// OpenMP keeps one pool for each calling thread, so the state of hold() is per thread too.
struct ThreadState {
  std::unique_ptr<TaskScheduler> scheduler;  // kept between holds for what it has learned
  bool held = false;
};

ThreadState& of_this_thread() {
  thread_local ThreadState state;
  return state;
}

class OpenMp final : public Executor {
 public:
  int size() const override {
    if (inside_task) return 1;
    if (const ThreadState& state = of_this_thread(); state.held) return state.scheduler->threads();
    return omp_in_parallel() ? 1 : omp_get_max_threads();
  }
  void will_read(const void* data, int64_t bytes) override {
    if (const ThreadState& state = of_this_thread(); state.held) state.scheduler->will_read(data, bytes);
  }

 private:
  void run_tasks(int64_t tasks, Call call, void* work) override {
    if (const ThreadState& state = of_this_thread(); state.held && !inside_task)
      return state.scheduler->run(tasks, call, work);
    if (size() == 1) {
      for (int64_t i = 0; i < tasks; ++i) call(work, i);
      return;
    }
    std::exception_ptr failure;
#pragma omp parallel for schedule(dynamic, 1)
    for (int64_t i = 0; i < tasks; ++i) {
      const InsideTask inside;
      try {
        call(work, i);
      } catch (...) {
#pragma omp critical(easydel_executor_failure)
        if (!failure) failure = std::current_exception();
      }
    }
    if (failure) std::rethrow_exception(failure);
  }

  void hold_threads(void (*call)(void* work), void* work) override {
    const int threads = size();
    ThreadState& state = of_this_thread();
    if (state.held || threads == 1) return call(work);
    if (!state.scheduler || state.scheduler->max_threads() < threads)
      state.scheduler = std::make_unique<TaskScheduler>(threads);
    TaskScheduler& scheduler = *state.scheduler;
    scheduler.restart(threads);
    std::exception_ptr failure;
#pragma omp parallel num_threads(threads)
    if (omp_get_thread_num() > 0) {
      scheduler.serve(omp_get_thread_num());
    } else {
      state.held = true;
      try {
        call(work);
      } catch (...) {
        failure = std::current_exception();
      }
      state.held = false;
      scheduler.stop();
    }
    if (failure) std::rethrow_exception(failure);
  }
};

}  // namespace

Executor& openmp_executor() {
  static OpenMp executor;
  return executor;
}

}  // namespace easydel::kernels
