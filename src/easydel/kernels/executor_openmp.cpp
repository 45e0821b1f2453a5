// The executor on torch's OpenMP team; the one file that needs -fopenmp.
#include <omp.h>

#include <exception>

#include "easydel/kernels/executor.h"

namespace easydel::kernels {

namespace {

class OpenMp final : public Executor {
 public:
  int size() const override { return omp_in_parallel() ? 1 : omp_get_max_threads(); }

 private:
  void run_parts(int64_t parts, Call call, void* work) override {
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
};

}  // namespace

Executor& openmp_executor() {
  static OpenMp executor;
  return executor;
}

}  // namespace easydel::kernels
