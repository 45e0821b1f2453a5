// Activations: values that are known, and derivatives that are those of the values.
#include "easydel/ops/activation.h"

#include <gtest/gtest.h>

#include <ATen/ops/linspace.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/tensor.h>

#include "support/data.h"

namespace easydel::ops {
namespace {

Activation named(const char* name) { return activation_of(name, "hidden_act"); }
double at_point(const char* name, double x) {
  return activate(at::tensor({x}, at::TensorOptions().dtype(at::kDouble)), named(name)).item<double>();
}

TEST(Activations, HaveTransformersValues) {
  EXPECT_NEAR(at_point("laplace", 0.707107), 0.5, 1e-12);
  EXPECT_NEAR(at_point("laplace", 1.0), 0.8504296, 1e-7);
  EXPECT_NEAR(at_point("sqrtsoftplus", 0.0), 0.8325546, 1e-7);
  EXPECT_NEAR(at_point("hardswish", 1.0), 2.0 / 3.0, 1e-12);
  EXPECT_NEAR(at_point("hardswish", -4.0), 0.0, 1e-12);
  EXPECT_NEAR(at_point("gelu_10", 12.0), 10.0, 1e-12);
  EXPECT_NEAR(at_point("gelu_10", 1.0), at_point("gelu", 1.0), 1e-12);
}

class ActivationNamed : public testing::TestWithParam<const char*> {};

TEST_P(ActivationNamed, HasTheDerivativeOfItsValues) {
  // Between the points where some activations have corners.
  const Tensor x = at::linspace(-11.03, 11.07, 240, at::TensorOptions().dtype(at::kDouble)).requires_grad_(true);
  const Activation kind = named(GetParam());
  activate(x, kind).sum().backward();
  const double step = 1e-5;
  const Tensor wanted = (activate(x.detach() + step, kind) - activate(x.detach() - step, kind)) / (2.0 * step);
  EXPECT_TRUE(x.grad().allclose(wanted, 1e-6, 1e-8)) << (x.grad() - wanted).abs().max().item<double>();
  const Tensor gate = x.detach().clone().requires_grad_(true);
  gated(gate, at::ones_like(x) * 3.0, kind).sum().backward();
  EXPECT_TRUE(gate.grad().allclose(wanted * 3.0, 1e-6, 1e-7));
}

INSTANTIATE_TEST_SUITE_P(All, ActivationNamed,
                         testing::Values("silu", "gelu", "gelu_10", "gelu_new", "quick_gelu", "relu", "relu2", "relu6",
                                         "leaky_relu", "sigmoid", "tanh", "mish", "hardswish", "laplace",
                                         "sqrtsoftplus", "linear"),
                         [](const auto& info) { return info.param; });

TEST(Activations, HaveTheSameBitsHoweverTheirElementsLie) {
  for (const char* name : {"silu", "gelu", "gelu_10", "gelu_new", "quick_gelu", "relu", "relu2", "relu6", "leaky_relu",
                           "sigmoid", "tanh", "mish", "hardswish", "laplace", "sqrtsoftplus"})
    for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
      const Activation kind = named(name);
      const Tensor wide = at::linspace(-6.0, 7.0, 5 * 160, at::kFloat).view({5, 160}).to(type);
      const Tensor gate = wide.narrow(1, 3, 71), up = wide.narrow(1, 80, 71);
      const Tensor alone = activate(gate.contiguous(), kind), both = gated(gate.contiguous(), up.contiguous(), kind);
      EXPECT_TRUE(activate(gate, kind).equal(alone)) << name;
      EXPECT_TRUE(gated(gate, up, kind).equal(both)) << name;
      EXPECT_TRUE(activate(gate.t(), kind).equal(alone.t())) << name;
      for (int64_t row = 0; row < 5; ++row) {
        EXPECT_TRUE(activate(gate.slice(0, row, row + 1), kind).equal(alone.slice(0, row, row + 1))) << name;
        EXPECT_TRUE(
            gated(gate.slice(0, row, row + 1), up.slice(0, row, row + 1), kind).equal(both.slice(0, row, row + 1)))
            << name;
      }
      const auto gradient = [&](const Tensor& x) {
        const Tensor leaf = x.detach().requires_grad_(true);
        activate(leaf, kind).sum().backward();
        return leaf.grad();
      };
      EXPECT_TRUE(gradient(gate).equal(gradient(gate.contiguous()))) << name;
    }
}

TEST(Activations, OfLearnedParametersHaveTheSameBitsHoweverTheirElementsLie) {
  const auto one = [](double x) { return at::tensor({x}, at::kFloat); };
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    const Tensor x = at::linspace(-6.0, 7.0, 5 * 83, at::kFloat).view({5, 83}).to(type);
    const auto activated = [&](const Tensor& part) { return xielu(part, one(0.7), one(0.9), one(0.5), one(-1e-6)); };
    const Tensor whole = activated(x);
    EXPECT_TRUE(activated(x.narrow(1, 3, 71)).equal(whole.narrow(1, 3, 71)));
    for (int64_t i = 0; i < x.size(1); ++i) EXPECT_TRUE(activated(x.select(1, i)).equal(whole.select(1, i)));
  }
}

TEST(Activations, AreRefusedByName) {
  EXPECT_EQ(test::refusal([] { activation_of("prelu", "config.json: hidden_act"); }),
            "config.json: hidden_act: 'prelu' is not a known activation\n    known: silu, swish, gelu, gelu_python, "
            "gelu_10, gelu_new, gelu_pytorch_tanh, gelu_fast, gelu_python_tanh, gelu_accurate, quick_gelu, relu, "
            "relu2, relu6, leaky_relu, sigmoid, tanh, mish, hardswish, laplace, sqrtsoftplus, linear");
}

}  // namespace
}  // namespace easydel::ops
