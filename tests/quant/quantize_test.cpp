#include "easydel/quant/quantize.h"

#include <ATen/ops/randn.h>
#include <ATen/ops/round.h>
#include <gtest/gtest.h>

#include <cmath>

#include "easydel/ops/quantized_product.h"

namespace easydel::quant {
namespace {

Format format(const char* method, std::optional<int64_t> group = {}) {
  return format_of({.method = method, .group_size = group}, "quantization");
}

Tensor values(const Tensor& weight, const Format& format) {
  return ops::dequantized(*quantize(weight, format), at::kFloat);
}

// The rule of 8bit, by torch: scale = max |w| / 127 of a row, codes to the nearest even.
TEST(Quantize, GivesEightBitsTheScaleOfTheRow) {
  const Tensor w = at::randn({37, 111}) * 0.05;
  const Tensor scale = w.abs().amax({1}, true) / 127;
  EXPECT_TRUE(values(w, format("8bit")).equal(at::round(w / scale) * scale));
  EXPECT_TRUE(values(w, format("a8bit")).equal(values(w, format("8bit"))));
}

TEST(Quantize, CutsGroupsFromARow) {
  const Tensor w = at::randn({5, 96});
  const Tensor groups = w.view({5, 3, 32}), scale = groups.abs().amax({2}, true) / 127;
  EXPECT_TRUE(values(w, format("a8q")).equal((at::round(groups / scale) * scale).view({5, 96})));
  // The last group is shorter.
  const Tensor rest = values(w, format("8bit", 64)).slice(1, 64);
  const Tensor own = w.slice(1, 64).abs().amax({1}, true) / 127;
  EXPECT_TRUE(rest.equal(at::round(w.slice(1, 64) / own) * own));
}

// Each value becomes the nearest number of the table, of two as near the lower.
TEST(Quantize, TakesTheNearestNumberOfTheTable) {
  const Tensor w = at::randn({6, 150});
  const Tensor got = values(w, format("nf4"));
  const auto& table = kernels::nf4_table();
  for (int64_t r = 0; r < 6; ++r)
    for (int64_t k = 0; k < 150; ++k) {
      const int64_t begin = k / 64 * 64;
      const float scale = w[r].slice(0, begin, std::min<int64_t>(begin + 64, 150)).abs().max().item<float>();
      const float x = w[r][k].item<float>() / scale;
      float best = table[0];
      for (const float number : table)
        if (std::fabs(double(x) - number) < std::fabs(double(x) - best)) best = number;
      ASSERT_EQ(got[r][k].item<float>(), best * scale) << r << " " << k;
    }
}

TEST(Quantize, KeepsZerosAndBothEndsOfARange) {
  Tensor w = at::randn({3, 64});
  w[0].zero_();
  w[1].abs_();
  w[2].abs_().neg_();
  for (const char* method : {"nf4", "a4q", "8bit", "a8q"}) {
    const Tensor got = values(w, format(method));
    EXPECT_EQ(got[0].abs().max().item<float>(), 0) << method;
    EXPECT_EQ(got[1].max().item<float>(), w[1].max().item<float>()) << method;
    EXPECT_EQ(got[2].min().item<float>(), w[2].min().item<float>()) << method;
  }
}

TEST(Quantize, ReadsEveryNumberType) {
  const Tensor w = at::randn({4, 70}).to(at::kBFloat16);
  for (const char* method : {"nf4", "8bit"}) {
    const Tensor wide = values(w.to(at::kFloat), format(method));
    EXPECT_TRUE(values(w, format(method)).equal(wide)) << method;
    EXPECT_TRUE(values(w.to(at::kDouble), format(method)).equal(wide)) << method;
    EXPECT_TRUE(rounded(w, format(method)).equal(wide.to(at::kBFloat16))) << method;
  }
}

}  // namespace
}  // namespace easydel::quant
