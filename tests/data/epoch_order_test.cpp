#include "easydel/data/epoch_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "easydel/data/shuffle.h"

namespace easydel::data {
namespace {

std::vector<int64_t> counted(const std::vector<int64_t>& order, const std::vector<int64_t>& sizes) {
  std::vector<int64_t> out(sizes.size(), 0);
  for (int64_t index : order) {
    size_t source = 0;
    while (index >= sizes[source]) index -= sizes[source++];
    ++out[source];
  }
  return out;
}

TEST(EpochOrder, AnEpochHasEveryExampleOnceAndEachEpochItsOwnOrder) {
  const EpochOrder order({5, 7}, {}, true, 42);
  const auto first = order.epoch(0), second = order.epoch(1);
  EXPECT_NE(first, second);
  EXPECT_EQ(first, order.epoch(0));
  EXPECT_EQ(std::set<int64_t>(first.begin(), first.end()).size(), 12u);
  EXPECT_NE(first, EpochOrder({5, 7}, {}, true, 43).epoch(0));
}

TEST(EpochOrder, UnshuffledIsTheOrderOfTheFiles) {
  std::vector<int64_t> want(6);
  std::iota(want.begin(), want.end(), int64_t{0});
  EXPECT_EQ(EpochOrder({2, 4}, {}, false, 42).epoch(3), want);
}

// Known answers, so that a run of today and one of next year see the same data.
TEST(EpochOrder, TheShuffleIsFixedForAllTime) {
  Stream stream(0, Use::epoch, 0);
  const uint64_t first = stream.next(), second = stream.next();
  Stream again(0, Use::epoch, 0);
  EXPECT_EQ(again.next(), first);
  EXPECT_EQ(again.next(), second);
  // The published vector of Philox 4x32-10 for an all-zero counter and key: 6627e8d5 e169c58d bc57ac4c 9b00dbd8.
  Stream zero(0, static_cast<Use>(0), 0);
  EXPECT_EQ(zero.next(), 0xe169c58d6627e8d5u);
  EXPECT_EQ(zero.next(), 0x9b00dbd8bc57ac4cu);
}

TEST(EpochOrder, ABlockHasTheFloorOfEachShareAndTheRestOfTheHeaviest) {
  // 0.5, 0.3, 0.2 of 9: 4, 2, 1, and 2 more of the first.
  const BlockMixture mixture{true, 9, StopStrategy::longest, {0.5, 0.3, 0.2}};
  const std::vector<int64_t> sizes{600, 200, 100};
  const auto order = EpochOrder(sizes, mixture, false, 1).epoch(0);
  for (int block = 0; block < 50; ++block) {
    const std::vector<int64_t> one(order.begin() + 9 * block, order.begin() + 9 * block + 9);
    EXPECT_EQ(counted(one, sizes), (std::vector<int64_t>{6, 2, 1}));
  }
}

TEST(EpochOrder, StopStrategies) {
  const std::vector<int64_t> sizes{100, 10};
  const auto run = [&](StopStrategy stop) {
    const EpochOrder order(sizes, {true, 10, stop, {0.5, 0.5}}, true, 7);
    return counted(order.epoch(0), sizes);
  };
  EXPECT_EQ(run(StopStrategy::longest), (std::vector<int64_t>{100, 10}));
  const auto restarted = run(StopStrategy::restart);
  EXPECT_EQ(restarted[0], 100);
  EXPECT_NEAR(static_cast<double>(restarted[1]), 100, 5);
  const auto first = run(StopStrategy::first_exhausted);
  EXPECT_EQ(first[1], 10);
  EXPECT_LE(first[0], 15);
}

TEST(EpochOrder, AllEpochsOfAMixtureAreEquallyLong) {
  for (const auto stop : {StopStrategy::longest, StopStrategy::restart, StopStrategy::first_exhausted}) {
    const EpochOrder order({31, 17, 3}, {true, 8, stop, {}}, true, 9);
    EXPECT_EQ(order.epoch(0).size(), order.epoch(5).size());
    EXPECT_EQ(static_cast<int64_t>(order.epoch(0).size()), order.size());
    EXPECT_NE(order.epoch(0), order.epoch(1));
  }
}

TEST(EpochOrder, ASourceWithoutAShareIsNotDrawnForever) {
  const EpochOrder order({5, 5}, {true, 4, StopStrategy::restart, {1.0, 0.0}}, false, 3);
  EXPECT_EQ(order.size(), 5);
}

}  // namespace
}  // namespace easydel::data
