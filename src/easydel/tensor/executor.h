// The threads that the kernels of a thread run on.
//
// Every op takes its executor from the thread that calls it. torch's own operators do not: they use the OpenMP pool of
// the calling thread (tensor/threads.h).
//
// Backward: on the CPU, torch's autograd engine runs backward() on the thread that calls it, and so does recomputation
// inside it. An op therefore finds the same executor forward and backward if both are called under the same
// UseExecutor. Threads that torch or anybody else starts have the default.
#pragma once

#include "easydel/kernels/executor.h"

namespace easydel::tensor {

// The calling thread's executor: the one that UseExecutor has bound, otherwise kernels::openmp_executor().
kernels::Executor& executor();

// Binds an executor to the calling thread for as long as the guard lives. The executor must outlive the guard. Guards
// nest, and each one ends on the thread that it began on. An executor may be bound to several threads, which then take
// turns on it.
class UseExecutor {
 public:
  explicit UseExecutor(kernels::Executor& executor);
  ~UseExecutor();
  UseExecutor(const UseExecutor&) = delete;
  UseExecutor& operator=(const UseExecutor&) = delete;

 private:
  kernels::Executor* before_;
};

}  // namespace easydel::tensor
