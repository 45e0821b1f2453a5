#include "easydel/tensor/threads.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

#include "easydel/tensor/executor.h"

namespace easydel::tensor {
namespace {

void does_each_part_once() {
  for (const int64_t parts : {0, 1, 2, 3, 7, 64, 1000}) {
    std::vector<std::atomic<int>> done(static_cast<size_t>(parts));
    executor().run(parts, [&](int64_t part) { ++done[size_t(part)]; });
    for (const auto& count : done) ASSERT_EQ(count, 1) << parts;
  }
}

TEST(HeldTeam, DoesEachPartOnce) {
  for (const int count : {1, 2, 5, 3}) {
    const Threads some(count);
    for (int pass = 0; pass < 20; ++pass)
      executor().hold([&] {
        EXPECT_EQ(executor().size(), count);
        does_each_part_once();
      });
    does_each_part_once();
  }
}

TEST(HeldTeam, AsksForMemoryThatIsReadNextWhateverItIs) {
  const Threads three(3);
  std::vector<char> here(1 << 20);
  std::atomic<int64_t> sum = 0;
  for (int pass = 0; pass < 50; ++pass)
    executor().hold([&] {
      for (int step = 0; step < pass % 7 + 3; ++step) {
        // Another order than in the last pass, nothing, and what may be gone by then.
        if (step % 3 == 0) executor().will_read(here.data() + step * pass, int64_t(here.size()) - step * pass);
        if (step % 3 == 1) executor().will_read(nullptr, 0);
        if (step % 3 == 2) executor().will_read(std::vector<char>(100'000).data(), 100'000);
        executor().run(5, [&](int64_t part) { sum += part; });
      }
    });
  int64_t steps = 0;
  for (int pass = 0; pass < 50; ++pass) steps += pass % 7 + 3;
  EXPECT_EQ(sum, steps * 10);
}

TEST(HeldTeam, RunsAHoldAndAStepInsideAPartByItself) {
  const Threads three(3);
  std::atomic<int> sum = 0;
  executor().hold([&] {
    executor().run(4, [&](int64_t) {
      EXPECT_EQ(executor().size(), 1);
      executor().hold([&] { executor().run(3, [&](int64_t) { ++sum; }); });
    });
    executor().hold([&] { executor().run(3, [&](int64_t) { ++sum; }); });
  });
  EXPECT_EQ(sum, 15);
}

TEST(HeldTeam, ThrowsWhatTheWorkOrAPartThrows) {
  const Threads two(2);
  EXPECT_THROW(executor().hold([] { throw std::runtime_error("work"); }), std::runtime_error);
  EXPECT_THROW(executor().hold([] {
    executor().run(8, [](int64_t part) {
      if (part == 5) throw std::runtime_error("part 5");
    });
  }),
               std::runtime_error);
  executor().hold([] { does_each_part_once(); });
}

TEST(HeldTeam, IsOneForEachThreadThatHolds) {
  const Threads two(2);
  std::atomic<int> sum = 0;
  std::vector<std::thread> holders;
  for (int i = 0; i < 3; ++i)
    holders.emplace_back([&] {
      executor().hold([&] {
        for (int step = 0; step < 100; ++step) executor().run(5, [&](int64_t) { ++sum; });
      });
    });
  for (std::thread& holder : holders) holder.join();
  EXPECT_EQ(sum, 3 * 100 * 5);
}

}  // namespace
}  // namespace easydel::tensor
