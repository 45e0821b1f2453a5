#include "easydel/elarge/adapter_config.h"

#include <gtest/gtest.h>

#include "support/data.h"

namespace easydel::elarge {
namespace {

// lora.adapter: the adapter's facts are its folder's, how the run goes on is the section's.
TEST(AdapterConfig, JoinsTheFolderAndTheKeysOfTheRun) {
  const test::TemporaryFolder work;
  test::write_file(work / "adapter/adapter_config.json",
                   R"({"peft_type": "LORA", "r": 4, "lora_alpha": 6, "lora_dropout": 0.5, "target_modules": ["q_proj"],
                       "base_model_name_or_path": "here"})");
  const auto joined = [&](const std::string& keys) {
    config::Problems problems;
    const std::string yaml = "model: {name_or_path: " + test::test_data("models/stories260K-hf").string() +
                             "}\nlora: {adapter: " + (work / "adapter").string() + keys + "}\nactions: [train]\n";
    return adapter_of(read_config(parse_yaml(yaml), problems, {}), true)->config;
  };
  const LoraConfig usual = joined("");
  EXPECT_EQ(usual.r, 4);
  EXPECT_EQ(usual.alpha, 6);
  EXPECT_EQ(usual.dropout, 0.5);
  EXPECT_EQ(usual.merge_base, models::MergeBase::trained);
  EXPECT_FALSE(usual.merge_to_codes);
  EXPECT_FALSE(usual.lora_plus_ratio);
  const LoraConfig given = joined(", dropout: 0.25, merge_base: original, merge_to_codes: true, lora_plus_ratio: 8");
  EXPECT_EQ(given.r, 4);
  EXPECT_EQ(given.dropout, 0.25);
  EXPECT_EQ(given.merge_base, models::MergeBase::original);
  EXPECT_TRUE(given.merge_to_codes);
  EXPECT_EQ(given.lora_plus_ratio, 8.0);
  EXPECT_EQ(test::refusal([&] { joined(", r: 8"); }),
            "lora.r: 8 contradicts lora.adapter, which has 4 (" + (work / "adapter").string() +
                ")\n    leave the key out: the adapter's own configuration holds");
}

}  // namespace
}  // namespace easydel::elarge
