#include "easydel/models/load_config.h"

#include <gtest/gtest.h>

#include "support/data.h"

namespace easydel::models {
namespace {

TEST(LoadSettings, AreReadFromEveryWordThatTheConfigurationTakes) {
  EXPECT_EQ(dtype_setting("auto", "--dtype"), DTypeSetting::automatic);
  for (const auto& choice : choices(DTypeSetting{})) {
    EXPECT_EQ(dtype_setting(choice.name, "--dtype"), choice.value) << choice.name;
    for (const std::string_view alias : choice.aliases) {
      if (alias.empty()) continue;
      EXPECT_EQ(dtype_setting(alias, "--dtype"), choice.value) << alias;
    }
  }
  EXPECT_EQ(dtype_setting("BFloat16", "--dtype"), DTypeSetting::bf16);
  EXPECT_EQ(device_setting("cuda", "--device"), DeviceSetting::gpu);
}

TEST(LoadSettings, RefuseOtherWords) {
  EXPECT_EQ(test::refusal([] { dtype_setting("fp17", "--dtype"); }),
            "--dtype: 'fp17' is not a dtype\n    known: auto, fp32, bf16, fp16");
  EXPECT_EQ(test::refusal([] { dtype_setting("", "--dtype"); }),
            "--dtype: '' is not a dtype\n    known: auto, fp32, bf16, fp16");
  EXPECT_EQ(test::refusal([] { device_setting("tpu", "--device"); }),
            "--device: 'tpu' is not a device\n    known: auto, cpu, gpu");
}

}  // namespace
}  // namespace easydel::models
