#include "easydel/tensor/executor.h"

#include <gtest/gtest.h>

#include <optional>
#include <thread>

namespace easydel::tensor {
namespace {

TEST(UseExecutor, BindsAnExecutorToItsThreadUntilItEnds) {
  kernels::Executor& before = executor();
  EXPECT_EQ(&before, &kernels::openmp_executor());
  const auto outer = kernels::make_pool(2), inner = kernels::make_pool(3);
  {
    const UseExecutor use_outer(*outer);
    EXPECT_EQ(&executor(), outer.get());
    {
      const UseExecutor use_inner(*inner);
      EXPECT_EQ(&executor(), inner.get());
    }
    EXPECT_EQ(&executor(), outer.get());
  }
  EXPECT_EQ(&executor(), &before);
}

TEST(UseExecutor, EndsWhenAnExceptionLeavesItsScope) {
  const auto pool = kernels::make_pool(2);
  EXPECT_THROW(
      {
        const UseExecutor use(*pool);
        throw 1;
      },
      int);
  EXPECT_EQ(&executor(), &kernels::openmp_executor());
}

TEST(UseExecutor, LeavesOtherThreadsAlone) {
  const auto own = kernels::make_pool(2), other = kernels::make_pool(1);
  const UseExecutor use(*own);
  const kernels::Executor *by_default = nullptr, *bound = nullptr;
  std::thread([&] {
    by_default = &executor();
    const UseExecutor use_other(*other);
    bound = &executor();
  }).join();
  EXPECT_EQ(by_default, &kernels::openmp_executor());
  EXPECT_EQ(bound, other.get());
  EXPECT_EQ(&executor(), own.get());
}

}  // namespace
}  // namespace easydel::tensor
