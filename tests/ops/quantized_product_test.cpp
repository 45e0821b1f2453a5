#include "easydel/ops/quantized_product.h"

#include <ATen/ops/linear.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include "easydel/kernels/executor.h"
#include "easydel/tensor/kernels.h"

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

TEST(QuantizedProduct, GivesARowTheSameBitsAloneAndKeepsItsNumberType) {
  const auto weight = quantized(at::randn({33, 64}), {kernels::Codes::bytes, 0, {}});
  const Tensor x = at::randn({50, 64}).to(at::kBFloat16), all = quantized_product(x, {{}, {}, nullptr, weight});
  EXPECT_EQ(all.scalar_type(), at::kBFloat16);
  for (const int64_t r : {0, 7, 49})
    EXPECT_TRUE(quantized_product(x.slice(0, r, r + 1), {{}, {}, nullptr, weight}).equal(all.slice(0, r, r + 1)));
}

}  // namespace
}  // namespace easydel::ops
