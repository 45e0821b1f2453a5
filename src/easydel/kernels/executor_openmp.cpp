// The executor on torch's OpenMP team; the one file that needs -fopenmp.
#include <omp.h>

#include <exception>

#include "easydel/kernels/executor.h"
#include "easydel/kernels/executor_steps.h"

namespace easydel::kernels {

namespace {

class OpenMp final : public Executor {
 public:
  int size() const override {
    if (held && !inside_a_part) return held->threads();
    return omp_in_parallel() ? 1 : omp_get_max_threads();
  }
  void reads(const void* data, int64_t bytes) override {
    if (held) held->reads(data, bytes);
  }

 private:
  void run_parts(int64_t parts, Call call, void* work) override {
    if (held && !inside_a_part) return held->run(parts, call, work);
    if (size() == 1) {
      for (int64_t i = 0; i < parts; ++i) call(work, i);
      return;
    }
    std::exception_ptr failure;
#pragma omp parallel for schedule(dynamic, 1)
    for (int64_t i = 0; i < parts; ++i) {
      try {
        call(work, i);
      } catch (...) {
#pragma omp critical(easydel_executor_failure)
        if (!failure) failure = std::current_exception();
      }
    }
    if (failure) std::rethrow_exception(failure);
  }

  void hold_team(void (*call)(void* work), void* work) override {
    const int most = size();
    if (held || most == 1) return call(work);
    thread_local std::unique_ptr<Steps> of_thread;
    if (!of_thread || of_thread->most() < most) of_thread = std::make_unique<Steps>(most);
    Steps& steps = *of_thread;
    steps.restart(most);
    std::exception_ptr failure;
#pragma omp parallel num_threads(most)
    if (omp_get_thread_num() > 0) {
      steps.serve(omp_get_thread_num());
    } else {
      held = &steps;
      try {
        call(work);
      } catch (...) {
        failure = std::current_exception();
      }
      held = nullptr;
      steps.stop();
    }
    if (failure) std::rethrow_exception(failure);
  }

  static thread_local Steps* held;  // the team that this thread holds
};

thread_local Steps* OpenMp::held = nullptr;

}  // namespace

Executor& openmp_executor() {
  static OpenMp executor;
  return executor;
}

}  // namespace easydel::kernels
