#include "easydel/quant/quantize.h"

#include <ATen/ops/matmul.h>
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
  return ops::decoded(coded(weight, format, at::kFloat), at::kFloat);
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

// Each value becomes the nearest number of the table, of two as near the lower. Blocks are those of the flat weight, as
// bitsandbytes': with 150 columns they go on from row to row.
TEST(Quantize, TakesTheNearestNumberOfTheTable) {
  for (const int64_t columns : {128, 150}) {
    const Tensor w = at::randn({6, columns});
    const Tensor got = values(w, format("nf4")).flatten(), flat = w.flatten();
    const auto& table = kernels::nf4_table();
    for (int64_t i = 0; i < flat.numel(); ++i) {
      const int64_t begin = i / 64 * 64;
      const float scale = flat.slice(0, begin, std::min<int64_t>(begin + 64, flat.numel())).abs().max().item<float>();
      const float x = flat[i].item<float>() * (1.0f / scale);
      float best = table[0];
      for (const float number : table)
        if (std::fabs(double(x) - number) < std::fabs(double(x) - best)) best = number;
      ASSERT_EQ(got[i].item<float>(), best * scale) << columns << " " << i;
    }
  }
}

// The words say what activations are: 8bit leaves them as they are, the others round them to bytes.
TEST(Quantize, TheWordSaysWhetherActivationsAreBytes) {
  const Tensor w = at::randn({7, 192}), x = at::randn({3, 192});
  const auto error = [&](const char* method) {
    const ops::Matrix codes = coded(w, format(method), at::kFloat);
    const Tensor exact = at::matmul(x.to(at::kDouble), ops::decoded(codes, at::kFloat).to(at::kDouble).t());
    return (ops::quantized_product(x, codes) - exact).abs().max().item<double>();
  };
  for (const char* method : {"8bit", "nf4", "fp4", "affine", "mxfp4", "mxfp8", "nvfp4", "nvfp8", "ternary", "binary"})
    EXPECT_LT(error(method), 2e-4) << method;
  for (const char* method : {"a8bit", "a8q", "a4q"}) EXPECT_GT(error(method), 2e-3) << method;
}

// a4q: whole numbers from -8 to 7, groups of 64, the scale's sign uses -8.
TEST(Quantize, FourBitsWithActivationsInBytesAreTheSameCodes) {
  const Tensor w = at::randn({5, 128});
  const Tensor groups = w.view({5, 2, 64}), most = groups.abs().amax({2}, true);
  const Tensor peak = groups.gather(2, groups.abs().argmax(2, true)), scale = peak / -8;
  const Tensor got = values(w, format("a4q")).view({5, 2, 64}) / scale;
  EXPECT_TRUE(at::round(got).allclose(got, 0, 1e-4));
  EXPECT_LE((got - groups / scale).abs().max().item<float>(), 1.001f);
  EXPECT_EQ(got.min().item<float>(), -8);
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
  for (const char* method : {"nf4", "8bit", "affine", "mxfp4"}) {
    const Tensor wide = values(w.to(at::kFloat), format(method));
    EXPECT_TRUE(values(w, format(method)).equal(wide)) << method;
    EXPECT_TRUE(values(w.to(at::kDouble), format(method)).equal(wide)) << method;
    EXPECT_TRUE(rounded(w, format(method)).equal(wide.to(at::kBFloat16))) << method;
  }
}

}  // namespace
}  // namespace easydel::quant
