#include "easydel/ops/norm.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <functional>

namespace easydel::ops {
namespace {

struct Kind {
  const char* text;
  bool layer, weighted, biased;
  double offset;
  bool wide;
};
const Kind kinds[] = {{"rms", false, true, false, 0, false},
                      {"rms with an offset", false, true, false, 1, false},
                      {"rms scaled in fp32", false, true, false, 0, true},
                      {"rms without a weight", false, false, false, 0, false},
                      {"layer", true, true, true, 0, false},
                      {"layer without a bias", true, true, false, 0, false},
                      {"layer without a weight", true, false, false, 0, false}};

Tensor norm(const Kind& kind, const Tensor& x, const Tensor& weight, const Tensor& bias) {
  return kind.layer ? layer_norm(x, weight, bias, 1e-5) : rms_norm(x, weight, 1e-5, kind.offset, kind.wide);
}
NormOfSum norm_of_sum(const Kind& kind, const Tensor& x, const Tensor& more, const Tensor& weight, const Tensor& bias) {
  return kind.layer ? add_layer_norm(x, more, weight, bias, 1e-5)
                    : add_rms_norm(x, more, weight, 1e-5, kind.offset, kind.wide);
}

// Results and gradients of x, the other term, weight and bias, of `read` of the sum and the norm.
std::vector<Tensor> run(const Kind& kind, at::ScalarType type, bool at_once,
                        const std::function<Tensor(const Tensor& sum, const Tensor& norm)>& read) {
  at::manual_seed(7);
  const auto leaf = [&](at::IntArrayRef shape, at::ScalarType of) { return at::randn(shape).to(of).requires_grad_(); };
  const Tensor x = leaf({9, 45}, type), more = leaf({9, 45}, type), weight = leaf({45}, at::kFloat),
               bias = leaf({45}, at::kFloat);
  const Tensor w = kind.weighted ? weight : Tensor(), b = kind.biased ? bias : Tensor();
  Tensor sum, normed;
  if (at_once) {
    const NormOfSum both = norm_of_sum(kind, x, more, w, b);
    sum = both.sum, normed = both.norm;
  } else {
    sum = x + more, normed = norm(kind, sum, w, b);
  }
  read(sum, normed).sum().backward();
  return {sum, normed, x.grad(), more.grad(), weight.grad(), bias.grad()};
}

TEST(NormOfASum, HasTheBitsAndGradientsOfTheTwoSteps) {
  const std::function<Tensor(const Tensor&, const Tensor&)> readers[] = {
      [](const Tensor& sum, const Tensor& norm) { return sum * sum + norm * norm; },
      [](const Tensor& sum, const Tensor&) { return sum * sum; },
      [](const Tensor&, const Tensor& norm) { return norm * norm; }};
  for (const Kind& kind : kinds)
    for (const auto type : {at::kFloat, at::kBFloat16})
      for (const auto& read : readers) {
        SCOPED_TRACE(kind.text);
        const auto steps = run(kind, type, false, read), both = run(kind, type, true, read);
        for (size_t i = 0; i < steps.size(); ++i) {
          ASSERT_EQ(steps[i].defined(), both[i].defined()) << i;
          if (steps[i].defined()) {
            EXPECT_TRUE(steps[i].equal(both[i])) << i;
          }
        }
      }
}

TEST(NormOfASum, TakesTermsOfDifferentTypesAndStrides) {
  at::manual_seed(8);
  const Tensor weight = at::randn({6});
  for (const auto& [x, more] :
       {std::pair{at::randn({4, 6}), at::randn({4, 6}).to(at::kBFloat16)},
        std::pair{at::randn({6, 4}).t(), at::randn({4, 6})}, std::pair{at::randn({4, 6}), at::randn({6})}}) {
    const NormOfSum both = add_rms_norm(x, more, weight, 1e-6);
    EXPECT_TRUE(both.sum.equal(x + more));
    EXPECT_TRUE(both.norm.equal(rms_norm(x + more, weight, 1e-6)));
  }
}

}  // namespace
}  // namespace easydel::ops
