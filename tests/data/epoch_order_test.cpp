#include "easydel/data/epoch_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "easydel/base/error.h"
#include "easydel/data/shuffle.h"

namespace easydel::data {
namespace {

std::vector<int64_t> epoch_of(const EpochOrder& order, int64_t epoch) {
  std::vector<int64_t> out;
  for (int64_t i = 0; i < order.size(); ++i) out.push_back(order.at(epoch, i));
  return out;
}

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
  const auto first = epoch_of(order, 0), second = epoch_of(order, 1);
  EXPECT_NE(first, second);
  EXPECT_EQ(first, epoch_of(order, 0));
  EXPECT_EQ(std::set<int64_t>(first.begin(), first.end()).size(), 12u);
  EXPECT_NE(first, epoch_of(EpochOrder({5, 7}, {}, true, 43), 0));
}

TEST(EpochOrder, UnshuffledIsTheOrderOfTheFiles) {
  std::vector<int64_t> want(6);
  std::iota(want.begin(), want.end(), int64_t{0});
  EXPECT_EQ(epoch_of(EpochOrder({2, 4}, {}, false, 42), 3), want);
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
  const auto order = epoch_of(EpochOrder(sizes, mixture, false, 1), 0);
  for (int block = 0; block < 50; ++block) {
    const std::vector<int64_t> one(order.begin() + 9 * block, order.begin() + 9 * block + 9);
    EXPECT_EQ(counted(one, sizes), (std::vector<int64_t>{6, 2, 1}));
  }
}

TEST(EpochOrder, StopStrategies) {
  const std::vector<int64_t> sizes{100, 10};
  const auto run = [&](StopStrategy stop) {
    const EpochOrder order(sizes, {true, 10, stop, {0.5, 0.5}}, true, 7);
    return counted(epoch_of(order, 0), sizes);
  };
  EXPECT_EQ(run(StopStrategy::longest), (std::vector<int64_t>{100, 10}));
  const auto restarted = run(StopStrategy::restart);
  EXPECT_EQ(restarted[0], 100);
  EXPECT_NEAR(static_cast<double>(restarted[1]), 100, 5);
  const auto first = run(StopStrategy::first_exhausted);
  EXPECT_EQ(first[1], 10);
  EXPECT_LE(first[0], 15);
}

TEST(EpochOrder, EachEpochOfAMixtureHasItsOwnOrder) {
  for (const auto stop : {StopStrategy::longest, StopStrategy::restart, StopStrategy::first_exhausted}) {
    const EpochOrder order({31, 17, 3}, {true, 8, stop, {}}, true, 9);
    EXPECT_NE(epoch_of(order, 0), epoch_of(order, 1));
    EXPECT_THROW((void)order.at(0, order.size()), Bug);
  }
}

// Which rows an epoch has, by its definition: full blocks of shares, then the last one.
TEST(EpochOrder, AMixtureUsesEverySourceEvenly) {
  const std::vector<int64_t> sizes{100, 37, 0, 12};
  for (const bool shuffled : {false, true})
    for (const auto stop : {StopStrategy::longest, StopStrategy::restart, StopStrategy::first_exhausted}) {
      const EpochOrder order(sizes, {true, 8, stop, {4, 2, 1, 1}}, shuffled, 9);
      std::vector<int64_t> uses(149, 0);
      for (const int64_t index : epoch_of(order, 2)) ++uses.at(size_t(index));
      EXPECT_EQ(uses, order.uses(2));
      for (size_t s = 0, begin = 0; s < sizes.size(); begin += size_t(sizes[s++])) {
        if (sizes[s] == 0) continue;
        const auto [few, many] =
            std::minmax_element(uses.begin() + long(begin), uses.begin() + long(begin + size_t(sizes[s])));
        EXPECT_LE(*many - *few, 1) << "no row is used again before all others were";
        EXPECT_LE(*many, stop == StopStrategy::longest ? 1 : 100);
        EXPECT_GE(*few, stop == StopStrategy::first_exhausted ? 0 : 1) << "every row is used";
      }
    }
}

TEST(EpochOrder, AMixtureThatIsNotShuffledKeepsTheOrderOfEachSource) {
  const EpochOrder order({40, 25}, {true, 8, StopStrategy::longest, {0.5, 0.5}}, false, 9);
  int64_t next[2] = {0, 40};
  for (const int64_t index : epoch_of(order, 0)) EXPECT_EQ(index, next[index >= 40]++);
}

// Places are computed: an order of more rows than any memory holds is as fast as a small one.
TEST(EpochOrder, PlacesOfAHugeEpochAreComputed) {
  const EpochOrder order({int64_t{1} << 50, int64_t{1} << 49}, {true, 2048, StopStrategy::restart, {}}, true, 3);
  std::set<int64_t> seen;
  for (int64_t i = 0; i < 1000; ++i) {
    const int64_t index = order.at(1, order.size() / 1000 * i);
    EXPECT_TRUE(index >= 0 && index < (int64_t{3} << 49));
    seen.insert(index);
  }
  EXPECT_EQ(seen.size(), 1000u);
}

WeightSchedule schedule_of(WeightInterpolation interpolation, int64_t updates) {
  return {interpolation, {{0, {1, 0}}, {10, {0, 3}}}, 4, 4 * updates};
}

// Blocks of two updates: their shares are those of the step at which they begin.
TEST(EpochOrder, AScheduleDecidesTheCountsOfEachBlock) {
  const std::vector<int64_t> sizes{30, 7};
  for (const bool shuffled : {false, true})
    for (const int64_t updates : {15, 16}) {
      const EpochOrder order(sizes, {true, 8, {}, {}, schedule_of(WeightInterpolation::linear, updates)}, shuffled, 9);
      ASSERT_EQ(order.size(), 4 * updates);
      const auto run = epoch_of(order, 0);
      std::vector<int64_t> of_first;
      for (size_t begin = 0; begin + 8 <= run.size(); begin += 8)
        of_first.push_back(counted({run.begin() + long(begin), run.begin() + long(begin) + 8}, sizes)[0]);
      of_first.resize(7);
      EXPECT_EQ(of_first, (std::vector<int64_t>{8, 7, 5, 3, 1, 0, 0})) << "8 * (1 - step / 10), of steps 0, 2, 4 ...";
      std::vector<int64_t> uses(37, 0);
      for (const int64_t index : run) ++uses.at(size_t(index));
      EXPECT_EQ(uses, order.uses(0));
      if (updates == 15) continue;  // the run ends within a block
      const auto [few, many] = std::minmax_element(uses.begin() + 30, uses.end());
      EXPECT_LE(*many - *few, 1) << "the small source restarts when it is exhausted";
    }
}

TEST(EpochOrder, ALongerRunOfAScheduleBeginsAsAShorterOne) {
  for (const auto interpolation :
       {WeightInterpolation::step, WeightInterpolation::linear, WeightInterpolation::cosine}) {
    const auto run = [&](int64_t updates) {
      return epoch_of(EpochOrder({30, 7}, {true, 8, {}, {}, schedule_of(interpolation, updates)}, true, 9), 0);
    };
    const auto shorter = run(11), longer = run(40);
    EXPECT_TRUE(std::equal(shorter.begin(), shorter.end(), longer.begin()));
  }
}

// If each document is a row, they are those of a schedule without packing.
TEST(EpochOrder, BlocksOfAScheduleAreDrawnOneAfterTheOther) {
  for (const bool shuffled : {false, true}) {
    WeightSchedule schedule = schedule_of(WeightInterpolation::linear, 16);
    const auto want = epoch_of(EpochOrder({30, 7}, {true, 8, {}, {}, schedule}, shuffled, 9), 0);
    schedule.is_packed = true;
    const EpochOrder order({30, 7}, {true, 8, {}, {}, schedule}, shuffled, 9);
    std::vector<int64_t> got, drawn;
    while (got.size() < want.size()) {
      const std::vector<int64_t> block = order.block(int64_t(got.size()) / 8, int64_t(got.size()) / 4, drawn);
      got.insert(got.end(), block.begin(), block.end());
    }
    EXPECT_EQ(got, want);
    EXPECT_EQ(drawn[0] + drawn[1], int64_t(want.size()));
    EXPECT_THROW((void)order.at(0, 0), Bug) << "where it is depends on how documents are packed";
  }
}

TEST(EpochOrder, AScheduleThatGivesABlockToSourcesWithoutRowsIsRefused) {
  try {
    const EpochOrder order({30, 0}, {true, 8, {}, {}, schedule_of(WeightInterpolation::step, 15)}, true, 9);
    FAIL();
  } catch (const UserError& error) {
    EXPECT_EQ(error.headline(),
              "mixture.mixture_weight_schedule: the sources with weights at step 10 have no rows to train on");
  }
}

TEST(EpochOrder, ASourceWithoutAShareIsNotDrawnForever) {
  const EpochOrder order({5, 5}, {true, 4, StopStrategy::restart, {1.0, 0.0}}, false, 3);
  EXPECT_EQ(order.size(), 5);
}

}  // namespace
}  // namespace easydel::data
