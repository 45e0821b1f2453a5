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

}  // namespace
}  // namespace easydel::elarge
