// Memory that requests have freed goes back to the system when it is not needed again soon.
#include "easydel/server/freed_memory.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

namespace easydel::test {
namespace {

using server::FreedMemory;

constexpr size_t mib = 1 << 20;

class FreedMemoryTest : public ::testing::Test {
 protected:
  // Looks ten times a second.
  void pass(double seconds, bool busy) {
    for (int i = 0; i < int(seconds * 10); ++i) {
      now_ += std::chrono::milliseconds(100);
      freed_.look(busy, now_);
    }
  }

  size_t resident_ = 100 * mib, after_trim_ = 100 * mib;
  int trims_ = 0;
  Clock::time_point now_ = Clock::time_point() + std::chrono::hours(1);
  FreedMemory freed_{{.resident_bytes = [this] { return resident_; },
                      .trim =
                          [this] {
                            ++trims_;
                            resident_ = after_trim_;
                          }}};
};

TEST_F(FreedMemoryTest, GoesBackOnceNothingIsInProgress) {
  pass(1, false);
  resident_ = 150 * mib;
  pass(10, true);
  EXPECT_EQ(trims_, 0) << "it may be needed again";
  pass(1.5, false);
  EXPECT_EQ(trims_, 0);
  pass(2, false);
  EXPECT_EQ(trims_, 1);
  pass(60, false);
  EXPECT_EQ(trims_, 1) << "once";
}

TEST_F(FreedMemoryTest, GoesBackToTheSameSizeEachTime) {
  pass(1, false);
  for (int i = 0; i < 5; ++i) {
    resident_ = 117 * mib;
    pass(5, false);
    EXPECT_EQ(trims_, i + 1);
    EXPECT_EQ(resident_, 100 * mib);
  }
}

TEST_F(FreedMemoryTest, IsLeftAloneWhereItIsLittleOrInUse) {
  pass(1, false);
  resident_ = 115 * mib;
  pass(60, false);
  EXPECT_EQ(trims_, 0);
  // What is in use stays: it is not tried again and again.
  resident_ = after_trim_ = 200 * mib;
  pass(60, false);
  EXPECT_EQ(trims_, 1);
  // When it is freed, what comes next is measured from there.
  resident_ = 110 * mib;
  pass(5, false);
  resident_ = 130 * mib;
  after_trim_ = 110 * mib;
  pass(5, false);
  EXPECT_EQ(trims_, 2);
}

TEST_F(FreedMemoryTest, GoesBackNowAndThenUnderSteadyLoad) {
  pass(1, true);
  resident_ = 160 * mib;
  pass(100, true);
  EXPECT_EQ(trims_, 0);
  resident_ = 165 * mib;
  pass(20, true);
  resident_ = 165 * mib;
  pass(20, true);
  EXPECT_EQ(trims_, 1);
}

// Blocks that are too small to be given back by free(), between others that stay.
TEST(FreedMemory, OfThisProcessGoesBack) {
  FreedMemory freed;
  Clock::time_point now = Clock::now();
  freed.look(false, now);
  const size_t before = FreedMemory::this_process().resident_bytes();
  std::vector<std::string> kept;
  {
    std::vector<std::string> blocks;
    for (int i = 0; i < 30000; ++i) (i % 100 ? blocks : kept).emplace_back(4000, 'x');
  }
  const size_t full = FreedMemory::this_process().resident_bytes();
  EXPECT_GT(full, before + 90 * mib);
  freed.look(false, now += std::chrono::seconds(5));
  EXPECT_LT(FreedMemory::this_process().resident_bytes(), before + 30 * mib);
}

}  // namespace
}  // namespace easydel::test
