#include "easydel/nn/state_slots.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

namespace easydel::nn {
namespace {

TEST(StateSlots, GivesNeighboursAsAView) {
  const Tensor all = at::arange(10, at::kFloat).view({5, 2});
  const StateSlots slots({1, 2, 3});
  const Tensor states = slots.take(all);
  EXPECT_TRUE(states.equal(all.narrow(0, 1, 3)));
  states.fill_(-1);
  EXPECT_EQ(all[2][1].item<float>(), -1) << "the storage itself";
  EXPECT_EQ(all[4][1].item<float>(), 9);
}

TEST(StateSlots, PutsOthersBackWhereTheyWere) {
  for (const std::vector<int64_t>& order : {std::vector<int64_t>{3, 1}, {2, 1}, {0, 4}}) {
    const Tensor all = at::arange(10, at::kFloat).view({5, 2}), before = all.clone();
    const StateSlots slots(order);
    const Tensor states = slots.take(all);
    for (size_t i = 0; i < order.size(); ++i) EXPECT_TRUE(states[int64_t(i)].equal(before[order[i]]));
    slots.put(all, states + 100);
    for (int64_t slot = 0; slot < 5; ++slot) {
      const bool taken = std::ranges::find(order, slot) != order.end();
      EXPECT_TRUE(all[slot].equal(before[slot] + (taken ? 100 : 0))) << slot;
    }
  }
}

}  // namespace
}  // namespace easydel::nn
