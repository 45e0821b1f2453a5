// The copies of a weight that products read: when they are created, packed and released.
#include "easydel/nn/weight_forms.h"

#include <ATen/ops/from_blob.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "easydel/base/files.h"
#include "easydel/nn/weight.h"
#include "nn/built.h"
#include "support/data.h"

namespace easydel::nn {
namespace {

Entry& weight_of(Built& built) {
  return built.scope().parameter("weight", {32, 48}, Role::weight, {.initial = Initial::normal(0.1)}).entry();
}

TEST(WeightForms, AreTheValuesInTheDtypeOfTheComputation) {
  Built built(at::kBFloat16);
  const Entry& entry = weight_of(built);
  const ops::Matrix matrix = entry.forms->matrix(Pass());
  EXPECT_TRUE(matrix.master.equal(entry.shard));
  EXPECT_TRUE(matrix.compute.equal(entry.shard.to(at::kBFloat16)));
  EXPECT_EQ(entry.forms->matrix(Pass()).compute.const_data_ptr(), matrix.compute.const_data_ptr());
}

TEST(WeightForms, FollowTheShardAfterItWasWritten) {
  Built built(at::kBFloat16);
  const at::NoGradGuard no_gradient;
  Entry& entry = weight_of(built);
  for (int use = 0; use < 2; ++use) entry.forms->matrix(Pass());
  entry.shard.zero_();
  EXPECT_GT(entry.forms->matrix(Pass()).compute.abs().max().item<float>(), 0.0f);
  entry.written();
  const ops::Matrix now = entry.forms->matrix(Pass());
  EXPECT_EQ(now.compute.abs().max().item<float>(), 0.0f);
  EXPECT_EQ(now.packed, nullptr);  // the packed copy belonged to the old shard
}

TEST(WeightForms, ArePackedAtTheSecondUse) {
  Built built;
  const at::NoGradGuard no_gradient;
  const Entry& entry = weight_of(built);
  EXPECT_EQ(entry.forms->matrix(Pass()).packed, nullptr);
  const auto packed = entry.forms->matrix(Pass()).packed;
  EXPECT_NE(packed, nullptr);
  EXPECT_EQ(entry.forms->matrix(Pass()).packed, packed);
}

// What was written to the memory of a file shows whether it is read anew.
TEST(WeightForms, ReleaseTheRowsOfAFileThatLieThereTwice) {
  const at::NoGradGuard no_gradient;
  const test::TemporaryFolder folder;
  files::write(folder / "weight", std::string(64 * 64 * 4, '\0'));
  const auto mapped = files::Mapped::open(folder / "weight");
  auto* const values = const_cast<std::byte*>(mapped->bytes().data());
  Built built;
  Entry& entry =
      built.scope().parameter("weight", {64, 64}, Role::embedding, {.initial = Initial::normal(0.1)}).entry();
  entry.shard = at::from_blob(values, {64, 64}, at::kFloat);
  const Tensor indices = at::zeros({30}, at::kLong);
  Pass pass;
  const auto look_up = [&] { return entry.weight->lookup(indices, -1, pass).sum().item<float>(); };
  entry.shard.fill_(1);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(look_up(), 1920.0f) << "its only copy";
  for (int use = 0; use < 2; ++use) entry.forms->matrix(Pass());
  entry.shard.fill_(1);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(look_up(), 1920.0f);
  EXPECT_EQ(look_up(), 0.0f) << "released after 64 rows";
  entry.shard.fill_(1);
  entry.written();
  for (int i = 0; i < 6; ++i) EXPECT_EQ(look_up(), 1920.0f) << "not the file's any more";
}

TEST(WeightForms, OfATrainableWeightAreNotPackedWhereABackwardFollows) {
  Built built(at::kFloat, /*learns=*/true);
  const Entry& entry = weight_of(built);
  for (int use = 0; use < 3; ++use) EXPECT_EQ(entry.forms->matrix(Pass()).packed, nullptr);
  const at::NoGradGuard no_gradient;
  EXPECT_EQ(entry.forms->matrix(Pass()).packed, nullptr);
  EXPECT_NE(entry.forms->matrix(Pass()).packed, nullptr);
}

// The backward reads its plain values.
TEST(WeightForms, OfAFrozenWeightAreNotPackedWhereABackwardFollows) {
  Built built;
  const Entry& entry = weight_of(built);
  ASSERT_TRUE(Pass().activations().has_backward());
  for (int use = 0; use < 3; ++use) EXPECT_EQ(entry.forms->matrix(Pass()).packed, nullptr);
  const at::NoGradGuard no_gradient;
  entry.forms->matrix(Pass());
  EXPECT_NE(entry.forms->matrix(Pass()).packed, nullptr);
}

TEST(WeightForms, OfAStackArePackedForTheWeightsThatHaveRows) {
  Built built;
  const at::NoGradGuard no_gradient;
  const Entry& entry =
      built.scope().parameter("weight", {3, 32, 48}, Role::weight, {.initial = Initial::normal(0.1)}).entry();
  const ops::ExpertMatrices first = entry.forms->stack({0, 4, 4, 4}, Pass());
  EXPECT_NE(first.packed[0], nullptr);
  EXPECT_EQ(first.packed[1], nullptr);
  const ops::ExpertMatrices second = entry.forms->stack({0, 0, 4, 4}, Pass());
  EXPECT_EQ(second.packed[0], first.packed[0]);
  EXPECT_NE(second.packed[1], nullptr);
}

TEST(WeightForms, OfAPartAreThatPartOfTheValuesAsTheyAreNow) {
  for (const bool learns : {false, true}) {
    Built built(at::kFloat, learns);
    Entry& entry = weight_of(built);
    const Parameter parameter(&entry);
    WeightForms part(parameter, [parameter] { return parameter.value().view({2, 16, 48}).narrow(1, 0, 4); });
    const auto expected = [&] { return entry.shard.detach().view({2, 16, 48}).narrow(1, 0, 4); };
    for (int use = 0; use < 2; ++use) EXPECT_TRUE(part.stack({0, 1, 2}, Pass()).compute.equal(expected()));
    EXPECT_EQ(part.stack({0, 1, 2}, Pass()).master.requires_grad(), learns);
    entry.shard.detach().add_(1.0);
    entry.written();
    EXPECT_TRUE(part.stack({0, 1, 2}, Pass()).compute.equal(expected()));
  }
}

TEST(WeightForms, TakeTheCopyThatAnOptimizerWrote) {
  Built built(at::kBFloat16, /*learns=*/true);
  Entry& entry = weight_of(built);
  EXPECT_FALSE(entry.forms->copy().defined());
  const Tensor before = entry.forms->matrix(Pass()).compute;
  EXPECT_EQ(entry.forms->copy().const_data_ptr(), before.const_data_ptr());
  entry.forms->copy().zero_();
  entry.written();
  EXPECT_FALSE(entry.forms->copy().defined());
  entry.forms->copied();
  EXPECT_EQ(entry.forms->matrix(Pass()).compute.abs().max().item<float>(), 0.0f);
}

}  // namespace
}  // namespace easydel::nn
