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

TEST(HeldPool, DoesEachTaskOnceInsideAndAfterAHold) {
  for (const int threads : {1, 2, 5}) {
    const auto pool = make_pool(threads);
    for (int pass = 0; pass < 20; ++pass)
      pool->hold([&] {
        EXPECT_EQ(pool->size(), threads);
        does_each_part_once(*pool);
      });
    does_each_part_once(*pool);
  }
}

TEST(HeldPool, MayBeToldOfAnyMemory) {
  const auto pool = make_pool(3);
  std::vector<char> here(1 << 20);
  std::atomic<int64_t> sum = 0;
  int64_t runs = 0;
  for (int pass = 0; pass < 50; ++pass)
    pool->hold([&] {
      for (int step = 0; step < pass % 7 + 3; ++step, ++runs) {
        // Another order than in the last pass, nothing, and memory that is freed before it is prefetched.
        if (step % 3 == 0) pool->will_read(here.data() + step * pass, int64_t(here.size()) - step * pass);
        if (step % 3 == 1) pool->will_read(nullptr, 0);
        if (step % 3 == 2) pool->will_read(std::vector<char>(100'000).data(), 100'000);
        pool->run(5, [&](int64_t part) { sum += part; });
      }
    });
  pool->will_read(here.data(), 1);
  EXPECT_EQ(sum, runs * 10);
}

TEST(HeldPool, RunsAHoldInsideAHoldOrATaskByItself) {
  const auto pool = make_pool(3);
  std::atomic<int> sum = 0;
  pool->hold([&] {
    pool->run(4, [&](int64_t) {
      EXPECT_EQ(pool->size(), 1);
      pool->hold([&] { pool->run(3, [&](int64_t) { ++sum; }); });
    });
    pool->hold([&] { pool->run(3, [&](int64_t) { ++sum; }); });
  });
  EXPECT_EQ(sum, 15);
}

TEST(HeldPool, IsFreeAgainAfterAnException) {
  const auto pool = make_pool(2);
  EXPECT_THROW(pool->hold([] { throw std::runtime_error("work"); }), std::runtime_error);
  std::thread([&] { pool->hold([&] { does_each_part_once(*pool); }); }).join();
}

TEST(HeldPool, MakesOtherCallersWaitForTheirTurn) {
  const auto pool = make_pool(2);
  std::atomic<int> sum = 0, inside = 0;
  std::vector<std::thread> callers;
  for (int c = 0; c < 3; ++c)
    callers.emplace_back([&] {
      for (int turn = 0; turn < 50; ++turn)
        pool->hold([&] {
          EXPECT_EQ(++inside, 1);
          for (int step = 0; step < 4; ++step) pool->run(5, [&](int64_t) { ++sum; });
          --inside;
        });
    });
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(sum, 3 * 50 * 4 * 5);
}

// Each waits inside its own hold for the other to be inside one.
TEST(HeldPool, SharesNothingWithAnotherPool) {
  const auto first = make_pool(2), second = make_pool(2);
  std::atomic<int> inside = 0;
  const auto meet = [&](Executor& pool) {
    pool.hold([&] {
      ++inside;
      const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
      while (inside < 2 && std::chrono::steady_clock::now() < until) pool.run(4, [](int64_t) {});
      EXPECT_EQ(inside, 2);
    });
  };
  std::thread other([&] { meet(*second); });
  meet(*first);
  other.join();
}

TEST(Executor, RunsATaskOfAnotherExecutorsTaskByItself) {
  const auto pool = make_pool(3), other = make_pool(2);
  const std::vector<Executor*> executors = {pool.get(), other.get(), &openmp_executor()};
  for (Executor* const outer : executors)
    for (Executor* const inner : executors) {
      if (outer->size() == 1) continue;
      std::atomic<int> sum = 0;
      outer->run(4, [&](int64_t) {
        EXPECT_EQ(inner->size(), 1);
        const auto thread = std::this_thread::get_id();
        inner->run(3, [&](int64_t) {
          EXPECT_EQ(std::this_thread::get_id(), thread);
          ++sum;
        });
      });
      EXPECT_EQ(sum, 12);
    }
}

TEST(Executor, IsNeverLargerThanTheProcessMayBe) {
  EXPECT_GE(allowed_threads(), 1);
  EXPECT_EQ(make_pool()->size(), allowed_threads());
  EXPECT_EQ(serial_executor().size(), 1);
}

}  // namespace
}  // namespace easydel::kernels
