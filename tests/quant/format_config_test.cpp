#include "easydel/quant/format_config.h"

#include <gtest/gtest.h>

#include "support/data.h"

namespace easydel::quant {
namespace {

TEST(FormatOf, KnowsTheWordsOfTheGuideAndTheirGroups) {
  const auto spec = [](const char* method, std::optional<int64_t> group = {}) {
    return format_of({.method = method, .group_size = group}, "quantization").spec;
  };
  EXPECT_EQ(spec("nf4").group, 64);
  EXPECT_EQ(spec("nf4").table, kernels::nf4_table());
  EXPECT_EQ(spec("a4q").group, 64);
  EXPECT_EQ(spec("a4q").table, kernels::q4_table());
  EXPECT_EQ(spec("a8q").group, 32);
  for (const char* method : {"8bit", "a8bit"}) {
    EXPECT_EQ(spec(method).group, 0) << method;
    EXPECT_EQ(spec(method).codes, kernels::Codes::bytes) << method;
    EXPECT_EQ(spec(method, 128).group, 128) << method;
  }
}

TEST(FormatOf, RefusesWhatHasNoKernel) {
  const auto refused = [](const FormatConfig& config) {
    return test::refusal([&] { format_of(config, "quantization.model"); });
  };
  EXPECT_EQ(refused({.method = "turboquant"}),
            "quantization.model: weights of turboquant are not built yet\n    built: 8bit, a4q, a8bit, a8q, affine, "
            "binary, fp4, mxfp4, mxfp8, nf4, nvfp4, nvfp8, ternary");
  EXPECT_EQ(refused({.method = "affine", .bits = 9}),
            "quantization.model.bits: affine has 2 to 8 bits, not 9\n    choose one of these; the default is 4");
  EXPECT_EQ(refused({.method = "mxfp4", .group_size = 64}),
            "quantization.model.group_size: mxfp4 has groups of 32, not 64\n    leave it out");
  EXPECT_EQ(refused({.method = "binary", .group_size = 64}),
            "quantization.model.group_size: binary has no groups\n    leave it out");
  EXPECT_EQ(refused({.method = "nf4", .bits = 8}), "quantization.model.bits: nf4 has 4 bits, not 8\n    leave it out");
  EXPECT_EQ(refused({.method = "8bit", .bits = 4}),
            "quantization.model.bits: 8bit has 8 bits, not 4\n    leave it out");
  EXPECT_EQ(refused({.method = "nf4", .group_size = 16}),
            "quantization.model.group_size: groups of 16 values are not built yet\n    give a multiple of 32");
  EXPECT_EQ(refused({.method = "nf4", .group_size = 64, .bits = 4}), "(nothing was refused)");
}

}  // namespace
}  // namespace easydel::quant
