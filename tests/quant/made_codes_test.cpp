#include "easydel/quant/made_codes.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "easydel/quant/quantize.h"
#include "easydel/tensor/executor.h"
#include "easydel/tensor/mapped.h"
#include "easydel/weights/safetensors.h"
#include "support/data.h"

namespace easydel::quant {
namespace {

CodeRule rule(const FormatConfig& config) { return rule_of(format_of(config, "quantization")); }

std::vector<float> some_values(int64_t count) {
  std::vector<float> out(size_t(count), 0);
  uint32_t state = 7;
  for (float& value : out) state = state * 1664525u + 1013904223u, value = float(int32_t(state)) * 0x1p-34f;
  return out;
}

std::vector<float> back(const CodeRule& rule, const std::vector<float>& values, int64_t n, int64_t k) {
  const auto weight = coded_weight(rule, make_codes(tensor::executor(), rule, values.data(), n, k, mean_of), n, k);
  std::vector<float> out(values.size());
  weight->decode(0, 1, n, out.data());
  return out;
}

// Every number of bits, rows whose last group is short: a value is at most half a step from its code's, beside what
// half precision takes from scale and zero.
TEST(MadeCodes, AffineStaysWithinHalfAStep) {
  const int64_t n = 5, k = 70;
  const std::vector<float> values = some_values(n * k);
  for (int64_t bits = 2; bits <= 8; ++bits) {
    const CodeRule affine = rule({.method = "affine", .group_size = 32, .bits = bits});
    EXPECT_EQ(affine.bits, bits);
    const std::vector<float> got = back(affine, values, n, k);
    for (int64_t i = 0; i < n * k; ++i) {
      const int64_t first = i / k * k + i % k / 32 * 32, end = std::min(first + 32, (i / k + 1) * k);
      const auto [low, high] = std::minmax_element(values.begin() + first, values.begin() + end);
      const float step = (*high - *low) / float((1 << bits) - 1);
      ASSERT_NEAR(got[size_t(i)], values[size_t(i)], 0.5f * step + 1.5e-3f * (*high - *low)) << bits << " " << i;
    }
  }
}

// Numbers of the table times a power of two come back as they are; so do e4m3 scales.
TEST(MadeCodes, SmallFloatsKeepTheirOwnNumbers) {
  std::vector<float> values;
  for (int i = 0; i < 64; ++i) values.push_back(e2m1_values()[size_t(i % 16)] * (i < 32 ? 0.25f : 8.0f));
  EXPECT_EQ(back(rule({.method = "mxfp4"}), values, 1, 64), values);
  EXPECT_EQ(back(rule({.method = "mxfp4"}), values, 2, 32), values);
  EXPECT_EQ(back(rule({.method = "nvfp4"}), values, 1, 64), values);
  std::vector<float> eights;
  for (int code = 0; code < 120; ++code) eights.push_back(e4m3_value(uint8_t(code)));
  eights.insert(eights.end(), 8, 448.0f);
  eights[120] = 448;
  const std::vector<float> got = back(rule({.method = "mxfp8"}), eights, 1, 128);
  // The first groups hold small numbers: they are scaled up, and keep their four bits.
  for (size_t i = 0; i < eights.size(); ++i) EXPECT_EQ(got[i], eights[i]) << i;
}

TEST(MadeCodes, TheExponentIsTheLeastThatHoldsTheGroup) {
  for (const float most : {6.0f, 6.0001f, 12.0f, 5.9999f, 0x1p-100f}) {
    const std::vector<float> values(32, most);
    const MadeCodes made = make_codes(tensor::executor(), rule({.method = "mxfp4"}), values.data(), 1, 32, mean_of);
    const double exponent = std::ceil(std::log2(double(most) / 6));
    EXPECT_EQ(int(int8_t(made.scale_codes[0])), int(exponent)) << most;
  }
}

TEST(MadeCodes, SignsHaveNoScale) {
  const std::vector<float> values = {-3, -0.1f, 0, 0.1f, 3, -1, 1, 0.2f};
  EXPECT_EQ(back(rule({.method = "binary"}), values, 2, 4), (std::vector<float>{-1, -1, 1, 1, 1, -1, 1, 1}));
  // Half of the standard deviation is 0.79.
  EXPECT_EQ(back(rule({.method = "ternary"}), values, 2, 4), (std::vector<float>{-1, 0, 0, 0, 1, -1, 1, 0}));
}

TEST(MadeCodes, ScalesOfZerosAreHarmless) {
  const std::vector<float> zeros(128, 0.0f);
  for (const char* method : {"nf4", "fp4", "affine", "mxfp4", "mxfp8", "nvfp4", "nvfp8", "ternary"})
    EXPECT_EQ(back(rule({.method = method}), zeros, 2, 64), zeros) << method;
}

TEST(MadeCodes, DoubleQuantizationIsForFourBitsOfBitsandbytes) {
  const Format nested = with_double_quantization(format_of({.method = "nf4"}, "quantization"), "quantization");
  EXPECT_TRUE(rule_of(nested).double_quant);
  EXPECT_EQ(rule_of(nested).method, "nf4");
  EXPECT_EQ(test::refusal([] {
              with_double_quantization(format_of({.method = "a8q"}, "quantization"), "quantization.model.double_quant");
            }),
            "quantization.model.double_quant: scales of a8q are not quantized\n    leave it out, or choose nf4 or fp4");
  const std::vector<float> values = some_values(64 * 64);
  const std::vector<float> plain = back(rule({.method = "nf4"}), values, 64, 64),
                           two = back(rule_of(nested), values, 64, 64);
  EXPECT_NE(plain, two);
  for (size_t i = 0; i < plain.size(); ++i) EXPECT_NEAR(plain[i], two[i], 0.02f * std::fabs(plain[i])) << i;
}

// To the bit (scripts/double_quantization_goldens.py).
TEST(MadeCodes, DoubleQuantizationHasTheNumbersOfBitsandbytes) {
  const auto file = weights::SafetensorsFile::open(test::test_data("codes/double_quantized.safetensors"));
  const auto numbers = [&](const std::string& name) {
    const Tensor tensor = tensor::from_view(file->at(name)).contiguous();
    return std::vector<float>(tensor.const_data_ptr<float>(), tensor.const_data_ptr<float>() + tensor.numel());
  };
  for (const std::string name : {"wide", "short", "uneven"})
    for (const std::string method : {"nf4", "fp4"}) {
      const Format nested = with_double_quantization(format_of({.method = method}, "quantization"), "quantization");
      const auto& shape = file->at(name).shape;
      const std::vector<float> wanted = numbers(name + "." + method),
                               got = back(rule_of(nested), numbers(name), shape[0], shape[1]);
      size_t others = 0;
      for (size_t i = 0; i < wanted.size(); ++i) others += got[i] != wanted[i];
      EXPECT_EQ(others, 0u) << name << " " << method;
    }
}

}  // namespace
}  // namespace easydel::quant
