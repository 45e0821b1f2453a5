// The output layer: scaled and capped logits, and scores of labels.
#include "easydel/nn/lm_head.h"

#include <ATen/ops/addmm.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include "nn/built.h"

namespace easydel::nn {
namespace {

TEST(LmHead, ScalesAndCapsItsLogits) {
  Built built(at::kFloat, /*learns=*/true);
  const Scope scope = built.scope() / "lm_head";
  const Parameter weight = scope.parameter("weight", {11, 8}, Role::weight, {.initial = Initial::normal(1)});
  const Parameter bias = scope.parameter("bias", {11}, Role::bias, {.initial = Initial::normal(1)});
  const LmHead head(weight, bias, /*multiplier=*/3, /*softcap=*/2);
  Pass pass = Pass::over({0, 4});
  const Tensor x = random_values({4, 8}, "x");
  const Tensor plain = at::addmm(bias.value(), x, weight.value().t());
  const Tensor expected = 2 * at::tanh(3 * plain / 2);
  EXPECT_EQ(head.vocabulary(), 11);
  EXPECT_TRUE(head.logits(x, pass).allclose(expected, 1e-5, 1e-5));
  EXPECT_TRUE(LmHead(weight).logits(x, pass).allclose(x.matmul(weight.value().t()), 1e-5, 1e-5));

  const Tensor labels = at::tensor({0, 10, 3, 3}, at::kLong);
  const Tensor by_hand = at::log_softmax(expected, 1).gather(1, labels.unsqueeze(1)).squeeze(1);
  by_hand.sum().backward();
  const Tensor gradient = weight.entry().shard.grad().clone();
  weight.entry().shard.mutable_grad() = Tensor();
  for (const int64_t chunk : {0, 3}) {
    const Tensor logps = head.score(x, labels, pass, {.chunk = chunk}).logps;
    EXPECT_TRUE(logps.allclose(by_hand, 1e-5, 1e-5)) << chunk;
    logps.sum().backward();
    EXPECT_TRUE(weight.entry().shard.grad().allclose(gradient, 1e-4, 1e-5)) << chunk;
    weight.entry().shard.mutable_grad() = Tensor();
  }
}

}  // namespace
}  // namespace easydel::nn
