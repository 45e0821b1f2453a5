#include "easydel/ops/quantized_product.h"

#include <ATen/ops/linear.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include "easydel/kernels/executor.h"
#include "easydel/tensor/kernels.h"
#include "support/memory.h"

namespace easydel::ops {
namespace {

std::shared_ptr<const kernels::QuantizedWeight> quantized(const Tensor& w, const kernels::QuantizedSpec& spec) {
  return std::make_shared<kernels::QuantizedWeight>(
      kernels::quantize(kernels::serial_executor(), tensor::input_of(w), w.size(0), w.size(1), spec));
}

TEST(QuantizedProduct, IsTheProductWithItsDequantizedWeightForwardAndBack) {
  const Tensor w = at::randn({20, 70});
  for (const auto& [spec, tolerance] :
       {std::pair{kernels::QuantizedSpec{kernels::Codes::table4, 32, kernels::nf4_table()}, 1e-4},
        {kernels::QuantizedSpec{kernels::Codes::bytes, 0, {}}, 0.3}}) {
    const auto weight = quantized(w, spec);
    const Tensor full = dequantized(*weight, at::kFloat);
    EXPECT_TRUE(full.allclose(w, 0, spec.codes == kernels::Codes::bytes ? 0.03 : 0.7));
    const Tensor x = at::randn({9, 70}).requires_grad_(true), bias = at::randn({20}).requires_grad_(true);
    const Tensor x2 = x.detach().clone().requires_grad_(true), bias2 = bias.detach().clone().requires_grad_(true);
    const Tensor y = quantized_product(x, {{}, {}, nullptr, weight}, bias), y2 = at::linear(x2, full, bias2);
    EXPECT_TRUE(y.allclose(y2, 0, tolerance));
    const Tensor dy = at::randn({9, 20});
    (y * dy).sum().backward(), (y2 * dy).sum().backward();
    EXPECT_TRUE(x.grad().allclose(x2.grad(), 1e-4, 1e-5));
    EXPECT_TRUE(bias.grad().allclose(bias2.grad(), 1e-4, 1e-5));
  }
}

// Rows are decoded in stretches of the order of additions, and again for every slab of the gradient's rows.
TEST(QuantizedProduct, GradientsHaveTheBitsOfTheWholeDecodedWeight) {
  for (const auto& [n, m] : {std::pair{70, 9}, {2100, 1030}, {4200, 3}}) {
    const Tensor w = at::randn({n, 64});
    for (const kernels::QuantizedSpec& spec :
         {kernels::QuantizedSpec{kernels::Codes::table4, 32, kernels::nf4_table()}, {kernels::Codes::bytes, 0, {}}}) {
      const Matrix weight{{}, {}, nullptr, quantized(w, spec)};
      for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
        const Tensor x = at::randn({m, 64}).to(type).requires_grad_(true), dy = at::randn({m, n}).to(type);
        quantized_product(x, weight).backward(dy);
        EXPECT_TRUE(x.grad().equal(multiply_back(dy, decoded(weight, type), type))) << n << " " << type;
      }
    }
  }
}

TEST(QuantizedProduct, NoWholeWeightExistsInTheBackward) {
  constexpr int64_t n = 16384, k = 256;
  const Matrix weight{
      {}, {}, nullptr, quantized(at::randn({n, k}), {kernels::Codes::table4, 64, kernels::nf4_table()})};
  const Tensor x = at::randn({2, k}).to(at::kBFloat16).requires_grad_(true);
  const Tensor y = quantized_product(x, weight), dy = at::ones_like(y);
  const test::PeakMemory memory;
  y.backward(dy);
  EXPECT_LT(memory.bytes(), n * k * 2 / 4);
}

TEST(QuantizedProduct, GivesARowTheSameBitsAloneAndKeepsItsNumberType) {
  const auto weight = quantized(at::randn({33, 64}), {kernels::Codes::bytes, 0, {}});
  const Tensor x = at::randn({50, 64}).to(at::kBFloat16), all = quantized_product(x, {{}, {}, nullptr, weight});
  EXPECT_EQ(all.scalar_type(), at::kBFloat16);
  for (const int64_t r : {0, 7, 49})
    EXPECT_TRUE(quantized_product(x.slice(0, r, r + 1), {{}, {}, nullptr, weight}).equal(all.slice(0, r, r + 1)));
}

}  // namespace
}  // namespace easydel::ops
