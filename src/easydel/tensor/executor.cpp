#include "easydel/tensor/executor.h"

#include <utility>

namespace easydel::tensor {
namespace {

thread_local kernels::Executor* bound = nullptr;

}  // namespace

kernels::Executor& executor() { return bound ? *bound : kernels::openmp_executor(); }

UseExecutor::UseExecutor(kernels::Executor& executor) : before_(std::exchange(bound, &executor)) {}
UseExecutor::~UseExecutor() { bound = before_; }

}  // namespace easydel::tensor
