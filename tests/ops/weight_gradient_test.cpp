#include "easydel/ops/weight_gradient.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "easydel/ops/embedding.h"
#include "easydel/ops/product.h"
#include "easydel/ops/score.h"

namespace easydel::ops {
namespace {

// A table that is looked up, multiplied by and scored with, as tied embeddings are.
struct Tied {
  Tensor table = at::randn({13, 8}).requires_grad_(true), other = at::randn({8, 8}).requires_grad_(true);
  Tensor ids = at::arange(6, at::kLong) % 4;

  Tensor loss(int64_t padding = -1) const {
    const Tensor x = product(embedding(table, ids, at::kFloat, padding), {other, other, nullptr});
    return -score(x, {table, table, nullptr}, {}, ids, {}).logps.sum();
  }
};

TEST(WeightGradient, GrowsInALeafAsAutogradsOwnSumDoes) {
  const Tied tied;
  const auto asked = torch::autograd::grad({tied.loss()}, {tied.table, tied.other});
  EXPECT_FALSE(tied.table.grad().defined() || tied.other.grad().defined());  // grad() leaves leaves alone
  tied.loss().backward();
  EXPECT_TRUE(tied.table.grad().allclose(asked[0], 1e-5, 1e-6));
  EXPECT_TRUE(tied.other.grad().equal(asked[1]));
}

TEST(WeightGradient, AddsMicroBatchesWhereTheFirstStands) {
  const Tied tied;
  tied.loss().backward();
  const Tensor once = tied.other.grad().clone(), table = tied.table.grad().clone();
  const void* const where = tied.other.grad().const_data_ptr();
  tied.loss().backward();
  EXPECT_TRUE(tied.other.grad().equal(once + once));
  EXPECT_TRUE(tied.table.grad().allclose(table + table, 1e-5, 1e-6));
  EXPECT_EQ(tied.other.grad().const_data_ptr(), where);
}

TEST(WeightGradient, ARowOfPaddingLearnsFromTheHeadAlone) {
  const Tied tied;
  const Tensor x = embedding(tied.table.detach(), tied.ids, at::kFloat, 2);
  const Tensor y = product(x, {tied.other.detach(), tied.other.detach(), nullptr});
  (-score(y, {tied.table, tied.table, nullptr}, {}, tied.ids, {}).logps.sum()).backward();
  const Tensor of_head = tied.table.grad().clone();
  tied.table.mutable_grad() = Tensor();
  tied.loss(2).backward();
  EXPECT_TRUE(tied.table.grad()[2].equal(of_head[2]));
  EXPECT_FALSE(tied.table.grad()[1].equal(of_head[1]));
}

TEST(WeightGradient, OfNoRowsIsZero) {
  const Tied tied;
  const Tensor none = at::randn({0, 8}).requires_grad_(true);
  product(none, {tied.other, tied.other, nullptr}).sum().backward();
  EXPECT_TRUE(tied.other.grad().eq(0).all().item<bool>());
}

TEST(WeightGradient, OfWhatIsNoLeafGoesOnToIt) {
  const Tied tied;
  const Tensor x = at::randn({5, 8}), doubled = tied.other * 2;
  product(x, {tied.other, tied.other, nullptr}).sum().backward();
  const Tensor plain = tied.other.grad().clone();
  tied.other.mutable_grad() = Tensor();
  product(x, {doubled, doubled.detach(), nullptr}).sum().backward();
  EXPECT_TRUE(tied.other.grad().equal(plain * 2));
}

}  // namespace
}  // namespace easydel::ops
