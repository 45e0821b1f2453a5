#include "easydel/kernels/executor.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

namespace easydel::kernels {
namespace {

void does_each_part_once(Executor& executor) {
  for (const int64_t parts : {0, 1, 2, 3, 7, 64, 1000}) {
    std::vector<std::atomic<int>> done(static_cast<size_t>(parts));
    executor.run(parts, [&](int64_t part) { ++done[size_t(part)]; });
    for (const auto& count : done) ASSERT_EQ(count, 1) << parts;
  }
}

TEST(Executor, DoesEachPartOnce) {
  does_each_part_once(serial_executor());
  does_each_part_once(openmp_executor());
  for (const int threads : {1, 2, 5}) does_each_part_once(*make_pool(threads));
}

TEST(Executor, SurvivesManyShortStepsAndSleeps) {
  const auto pool = make_pool(3);
  std::atomic<int64_t> sum = 0;
  int64_t expected = 0;
  for (int step = 0; step < 5000; ++step) {
    const int64_t parts = step % 9;
    pool->run(parts, [&](int64_t part) { sum += part + 1; });
    expected += parts * (parts + 1) / 2;
    if (step % 1000 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));  // the workers fall asleep
  }
  EXPECT_EQ(sum, expected);
}

TEST(Executor, TakesTurnsBetweenCallers) {
  const auto pool = make_pool(2);
  std::atomic<int> sum = 0;
  std::vector<std::thread> callers;
  for (int c = 0; c < 3; ++c)
    callers.emplace_back([&] {
      for (int step = 0; step < 200; ++step) pool->run(5, [&](int64_t) { ++sum; });
    });
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(sum, 3 * 200 * 5);
}

TEST(Executor, RunsAStepInsideAPartByItself) {
  for (Executor* const executor : {&serial_executor(), &openmp_executor(), make_pool(2).release()}) {
    std::atomic<int> sum = 0;
    executor->run(4, [&](int64_t) { executor->run(3, [&](int64_t) { ++sum; }); });
    EXPECT_EQ(sum, 12);
    if (executor != &serial_executor() && executor != &openmp_executor()) delete executor;
  }
}

TEST(Executor, ThrowsWhatAPartThrows) {
  const auto pool = make_pool(3);
  for (Executor* const executor : {&serial_executor(), &openmp_executor(), pool.get()}) {
    const auto fail = [&] {
      executor->run(8, [](int64_t part) {
        if (part == 5) throw std::runtime_error("part 5");
      });
    };
    EXPECT_THROW(fail(), std::runtime_error);
    std::atomic<int> sum = 0;
    executor->run(8, [&](int64_t) { ++sum; });
    EXPECT_EQ(sum, 8);
  }
}

TEST(Executor, IsNeverLargerThanTheProcessMayBe) {
  EXPECT_GE(allowed_threads(), 1);
  EXPECT_EQ(make_pool()->size(), allowed_threads());
  EXPECT_EQ(serial_executor().size(), 1);
}

}  // namespace
}  // namespace easydel::kernels
