// e^x and its gradient, and that an element's bits do not depend on its place.
#include "easydel/ops/exponential.h"

#include <gtest/gtest.h>

#include <ATen/ops/linspace.h>

namespace easydel::ops {
namespace {

TEST(Exponential, HasItsValuesAndItselfAsItsDerivative) {
  for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
    const Tensor x = at::linspace(-30, 30, 331, at::kDouble).to(type).requires_grad_(true), y = ops::exponential(x);
    EXPECT_EQ(y.scalar_type(), type);
    EXPECT_TRUE(y.to(at::kDouble).allclose(x.detach().to(at::kDouble).exp(), 3e-7, 0.0));
    (y * 3).sum().backward();
    EXPECT_TRUE(x.grad().equal(y.detach() * 3));
  }
}

TEST(Exponential, HasTheSameBitsHoweverItsElementsLie) {
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    const Tensor all = at::linspace(-9, 4, 6 * 83, at::kFloat).view({6, 83}).to(type), whole = ops::exponential(all);
    EXPECT_TRUE(ops::exponential(all.t()).equal(whole.t()));
    EXPECT_TRUE(ops::exponential(all.narrow(1, 5, 71)).equal(whole.narrow(1, 5, 71)));
    for (int64_t row = 0; row < all.size(0); ++row)
      for (int64_t i = 0; i < all.size(1); ++i) EXPECT_TRUE(ops::exponential(all[row][i]).equal(whole[row][i]));
  }
  EXPECT_EQ(ops::exponential(at::linspace(0, 1, 0, at::kFloat)).numel(), 0);
}

}  // namespace
}  // namespace easydel::ops
