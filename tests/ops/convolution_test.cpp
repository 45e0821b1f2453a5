#include "easydel/ops/convolution.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "easydel/base/error.h"
#include "easydel/kernels/isa.h"

namespace easydel::ops {
namespace {

double distance(const Tensor& a, const Tensor& b) {
  return a.numel() == 0 ? 0 : (a.to(at::kDouble) - b.to(at::kDouble)).abs().max().item<double>();
}

// By torch, each sequence alone, in double precision.
Tensor by_torch(const Tensor& x, const Tensor& weight, const Tensor& bias, const std::vector<int64_t>& cu_seqlens) {
  const int64_t channels = weight.size(0), held = weight.size(1) - 1;
  std::vector<Tensor> parts;
  for (size_t s = 0; s + 1 < cu_seqlens.size(); ++s) {
    const Tensor own = x.slice(0, cu_seqlens[s], cu_seqlens[s + 1]).t().unsqueeze(0);
    if (own.size(2) == 0) continue;
    const Tensor padded = at::cat({at::zeros({1, channels, held}, own.options()), own}, 2);
    parts.push_back(at::conv1d(padded, weight.unsqueeze(1), bias, at::IntArrayRef{1}, at::IntArrayRef{0},
                               at::IntArrayRef{1}, channels)
                        .squeeze(0)
                        .t());
  }
  return at::cat(parts);
}

const std::vector<int64_t> sequences = {0, 5, 5, 6, 19};

TEST(CausalConvolution, IsTorchsOfEachSequenceWithItsGradients) {
  at::manual_seed(5);
  for (const int64_t channels : {1, 6, 16, 37})
    for (const int64_t width : {1, 2, 4, 7})
      for (const bool has_bias : {false, true}) {
        const auto leaf = [](Tensor t) { return t.to(at::kDouble).requires_grad_(true); };
        const Tensor x = at::randn({19, channels}), weight = at::randn({channels, width}), bias = at::randn({channels});
        const Tensor g = at::randn({19, channels});
        const std::vector<Tensor> wide = {leaf(x), leaf(weight), leaf(bias)};
        std::vector<Tensor> own = {x.clone().requires_grad_(), weight.clone().requires_grad_(),
                                   bias.clone().requires_grad_()};
        const Tensor expected = by_torch(wide[0], wide[1], has_bias ? wide[2] : Tensor(), sequences);
        const Tensor y = causal_convolution(own[0], own[1], has_bias ? own[2] : Tensor(), sequences);
        EXPECT_LT(distance(y, expected), 1e-5);
        expected.backward(g.to(at::kDouble));
        y.backward(g);
        for (size_t i = 0; i < (has_bias ? 3u : 2u); ++i) EXPECT_LT(distance(own[i].grad(), wide[i].grad()), 3e-5) << i;
        // The path of other devices, in double precision here.
        const std::vector<Tensor> again = {leaf(x), leaf(weight), leaf(bias)};
        const Tensor slow = causal_convolution(again[0], again[1], has_bias ? again[2] : Tensor(), sequences);
        EXPECT_LT(distance(slow, expected), 1e-12);
        slow.backward(g.to(at::kDouble));
        EXPECT_LT(distance(again[0].grad(), wide[0].grad()), 1e-12);
      }
}

TEST(CausalConvolution, HasTheSameBitsWholeAndCutAnyhowOnEveryInstructionSet) {
  at::manual_seed(6);
  for (const auto type : {at::kFloat, at::kBFloat16}) {
    const Tensor x = at::randn({12, 21}).to(type), weight = at::randn({21, 4}).to(type),
                 bias = at::randn({21}).to(type);
    Tensor whole;
    for (const kernels::Isa isa : kernels::available_isas()) {
      const kernels::UseIsa forced(isa);
      const Tensor y = causal_convolution(x, weight, bias, {0, 12});
      if (!whole.defined()) whole = y;
      EXPECT_TRUE(y.equal(whole));
      const Tensor state = at::zeros({1, 3, 21});
      for (const auto& [begin, end] : {std::pair{0, 1}, std::pair{1, 3}, std::pair{3, 3}, std::pair{3, 12}})
        EXPECT_TRUE(causal_convolution(x.slice(0, begin, end), weight, bias, {0, end - begin}, state)
                        .equal(whole.slice(0, begin, end)));
      EXPECT_TRUE(state[0].equal(x.slice(0, 9, 12).to(at::kFloat)));
    }
    EXPECT_LT(distance(whole, by_torch(x.to(at::kDouble), weight.to(at::kDouble), bias.to(at::kDouble), {0, 12})),
              type == at::kFloat ? 1e-5 : 0.05);
  }
}

TEST(CausalConvolution, RefusesGradientsThroughStates) {
  const Tensor x = at::randn({2, 3}).requires_grad_();
  EXPECT_THROW(causal_convolution(x, at::randn({3, 4}), {}, {0, 2}, at::zeros({1, 3, 3})), Bug);
}

}  // namespace
}  // namespace easydel::ops
