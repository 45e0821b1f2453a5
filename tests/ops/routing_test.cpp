// Routers: chosen experts and their weights.
#include "easydel/ops/routing.h"

#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <cmath>

#include "easydel/ops/dropout.h"

namespace easydel::ops {
namespace {

std::vector<int64_t> list(const Tensor& t) {
  const Tensor flat = t.contiguous().view({-1});
  return {flat.const_data_ptr<int64_t>(), flat.const_data_ptr<int64_t>() + flat.numel()};
}

const Tensor logits = at::tensor({1.0f, 3.0f, 2.0f, 0.0f}).view({1, 4});

TEST(Router, NormalisesTheBestOfASoftmax) {
  const Routing found = route(logits, {.experts = 4, .top_k = 2, .normalise = true});
  EXPECT_EQ(list(found.indices), (std::vector<int64_t>{1, 2}));
  const double first = 1 / (1 + std::exp(-1.0));
  EXPECT_NEAR(found.weights[0][0].item<double>(), first, 1e-6);
  EXPECT_NEAR(found.weights[0][1].item<double>(), 1 - first, 1e-6);
}

TEST(Router, CorrectsTheChoiceAndNotTheWeights) {
  const Tensor correction = at::tensor({0.9f, 0.0f, 0.0f, 0.9f});
  const Routing found =
      route(logits, {.experts = 4, .top_k = 2, .scoring = Scoring::sigmoid, .factor = 2.0}, correction);
  EXPECT_EQ(list(found.indices), (std::vector<int64_t>{0, 3}));
  EXPECT_NEAR(found.weights[0][0].item<double>(), 2 / (1 + std::exp(-1.0)), 1e-6);
  EXPECT_NEAR(found.weights[0][1].item<double>(), 1.0, 1e-6);
}

TEST(Router, TakesOnlyExpertsOfTheBestGroups) {
  // The best expert is in a group whose best two are the worse pair.
  const Tensor scores = at::tensor({3.0f, -9.0f, 2.0f, 2.0f}).view({1, 4});
  const Routing found = route(
      scores,
      {.experts = 4, .top_k = 2, .scoring = Scoring::sigmoid, .groups = 2, .top_groups = 1, .two_for_a_group = true});
  const auto chosen = list(found.indices);
  EXPECT_EQ(chosen[0] + chosen[1], 2 + 3);
}

TEST(Router, OfSparseMixerWeighsOnlyWhatIsNear) {
  const Routing far = route(logits, {.experts = 4, .top_k = 2, .scoring = Scoring::sparsemixer, .jitter = 0.01});
  EXPECT_EQ(list(far.indices), (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(far.weights[0][0].item<float>(), 1.0f);
  const Routing near = route(logits, {.experts = 4, .top_k = 2, .scoring = Scoring::sparsemixer, .jitter = 0.2});
  EXPECT_LT(near.weights[0][0].item<float>(), 1.0f);
}

TEST(Router, OfSparseMixerDrawsInProportionWhileTraining) {
  const RouterSpec spec{.experts = 3, .top_k = 2, .scoring = Scoring::sparsemixer, .jitter = 0.2};
  constexpr int64_t rows = 65536;
  // The first two are near one another, the third is far from both.
  const Tensor scores = at::tensor({1.0f, 0.8f, -4.0f}).expand({rows, 3}).contiguous().requires_grad_(true);
  ASSERT_EQ(lots_of(spec), 8);
  const Routing found = route(scores, spec, {}, uniform(rows, 8, 7, 0));
  const Tensor first = found.indices.select(1, 0), weight = found.weights.select(1, 0).detach();
  const double best = 1 / (1 + std::exp(-0.2));
  EXPECT_NEAR(first.eq(0).to(at::kDouble).mean().item<double>(), best, 0.01);
  EXPECT_NEAR(weight.masked_select(first.eq(0)).min().item<double>(), best, 1e-6);
  // Of the others one in four counts whole, the rest a third.
  const Tensor other = weight.masked_select(first.eq(1));
  EXPECT_NEAR(other.max().item<double>(), 1 - best, 1e-6);
  EXPECT_NEAR(other.min().item<double>(), (1 - best) * 0.3333, 1e-6);
  EXPECT_NEAR(other.gt(0.9 * (1 - best)).to(at::kDouble).mean().item<double>(), 0.25, 0.02);
  // Gradients are those of the softmax, whatever a weight counts.
  found.weights.select(1, 0).sum().backward();
  const double slope = best * (1 - best);
  EXPECT_NEAR(scores.grad().select(1, 0).abs().min().item<double>(), slope, 1e-5);
  EXPECT_NEAR(scores.grad().select(1, 0).abs().max().item<double>(), slope, 1e-5);
}

TEST(TokensOfExperts, CountsChoicesOfExpertsThatNobodyChoseToo) {
  const Tensor found = tokens_of_experts(at::tensor({0, 2, 2, 0, 2, 1}, at::kLong).view({3, 2}), 4);
  EXPECT_TRUE(found.equal(at::tensor({2.0f, 1.0f, 3.0f, 0.0f})));
}

TEST(LoadBalancing, IsTheNumberOfChoicesWhereAllExpertsAreAlike) {
  const Tensor even = at::tensor({0.1f, 0.0f, 0.0f, 0.1f}).view({2, 2});
  EXPECT_NEAR(load_balancing_loss({even}, 1).item<double>(), 1.0, 1e-6);
  // Tokens that do not count are left out.
  const Tensor counts = at::tensor({1.0f, 0.0f});
  const double share = 1 / (1 + std::exp(-0.1));
  EXPECT_NEAR(load_balancing_loss({even}, 1, counts).item<double>(), 2 * share, 1e-5);
}

TEST(RouterZLoss, IsTheMeanSquareOfTheLogNormalizer) {
  EXPECT_NEAR(router_z_loss({at::tensor({0.0f, 0.0f}).view({1, 2})}).item<double>(), std::log(2.0) * std::log(2.0),
              1e-6);
}

}  // namespace
}  // namespace easydel::ops
