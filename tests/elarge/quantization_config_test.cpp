#include "easydel/elarge/quantization_config.h"

#include <gtest/gtest.h>

#include "easydel/elarge/elarge.h"
#include "easydel/quant/made_codes.h"
#include "support/data.h"

namespace easydel::elarge {
namespace {

QuantizationConfig read(const std::string& keys) {
  config::Problems problems;
  const Config config = read_config(
      parse_yaml("model: {name_or_path: here}\nquantization: {" + keys + "}\nactions: [generate]\n"), problems, {});
  return config.quantization;
}

TEST(QuantizationConfig, DoublesTheQuantizationOfFourBits) {
  for (const std::string method : {"nf4", "fp4"}) {
    const auto of = [&](const std::string& more) {
      return quant::rule_of(read("model: {quantization_method: " + method + more + "}").weight_format()->format);
    };
    EXPECT_EQ(of("").method, method);
    EXPECT_FALSE(of("").double_quant);
    EXPECT_TRUE(of(", double_quant: true").double_quant);
    EXPECT_TRUE(of(", bnb_4bit_use_double_quant: true").double_quant) << "the name of other tools";
  }
  EXPECT_EQ(test::refusal([] { read("model: {quantization_method: a8q, double_quant: true}").weight_format(); }),
            "quantization.model.double_quant: scales of a8q are not quantized\n    leave it out, or choose nf4 or fp4");
  EXPECT_EQ(test::refusal([] { read("kv_cache: {quantization_method: 8bit, double_quant: true}").cache_format({}); }),
            "quantization.kv_cache.double_quant: has no effect on the KV cache\n    leave it out");
}

TEST(QuantizationConfig, ReadsCodesInAnotherFormat) {
  const auto of = [](const std::string& keys) { return *read("model: {" + keys + "}").weight_format(); };
  const WeightFormat made = of("quantization_method: nf4, runtime_dtype: a8q, group_size: 128, double_quant: true");
  EXPECT_EQ(made.format.name, "a8q");
  EXPECT_EQ(made.format.spec.group, 32);
  ASSERT_TRUE(made.stored);
  EXPECT_EQ(quant::rule_of(*made.stored).method, "nf4");
  EXPECT_EQ(made.stored->spec.group, 128);
  EXPECT_TRUE(quant::rule_of(*made.stored).double_quant);
  EXPECT_FALSE(made.of_codes);
  // Of a checkpoint in codes; the other keys are those of the new format.
  const WeightFormat converted = of("runtime_dtype: a8q, group_size: 64");
  EXPECT_EQ(converted.format.name, "a8q");
  EXPECT_EQ(converted.format.spec.group, 64);
  EXPECT_FALSE(converted.stored);
  EXPECT_TRUE(converted.of_codes);
  const WeightFormat same = of("quantization_method: nf4, runtime_dtype: nf4");
  EXPECT_EQ(same.format.name, "nf4");
  EXPECT_FALSE(same.stored || same.of_codes);
  EXPECT_FALSE(of("quantization_method: nf4").of_codes);
}

TEST(QuantizationConfig, KeepsTheCacheInCodes) {
  const auto of = [](const std::string& keys) { return read("kv_cache: {" + keys + "}").cache_format({}); };
  for (const char* const word : {"8bit", "a8bit", "a8q"})
    EXPECT_EQ(of(std::string("quantization_method: ") + word), nn::CacheFormat::int8);
  EXPECT_EQ(of("quantization_method: a4q"), nn::CacheFormat::int4_values);
  EXPECT_EQ(of("quantization_method: a4q, bits: 4"), nn::CacheFormat::int4_values);
  for (const char* const word : {"mxfp8", "nvfp8"})
    EXPECT_EQ(of(std::string("quantization_method: ") + word), nn::CacheFormat::e4m3);
  EXPECT_EQ(of("quantization_method: 8bit, group_size: 32"), nn::CacheSetting(nn::CacheFormat::int8, 32));
}

}  // namespace
}  // namespace easydel::elarge
