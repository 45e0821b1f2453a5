#include "easydel/elarge/overridden_key.h"

#include <gtest/gtest.h>

namespace easydel::elarge {
namespace {

std::string placed(const char* file, const char* key, const char* overrides) {
  const auto own = overridden_key({Where(FilePlace{file}, key), "is wrong"}, parse_yaml(overrides));
  if (!own) return "";
  return own->path + " " + std::to_string(own->place.line) + ":" + std::to_string(own->place.column);
}

TEST(OverriddenKey, IsPlacedWhereItWasWritten) {
  EXPECT_EQ(placed("dir/config.json", "rope_scaling.rope_type", "rope_scaling:\n  factor: 2\n  rope_type: bogus"),
            "base_config.values.rope_scaling.rope_type 3:14");
  EXPECT_EQ(placed("dir/config.json", "rope_scaling.factor", "rope_scaling: {rope_type: yarn}"),
            "base_config.values.rope_scaling.factor 1:15");
  EXPECT_EQ(placed("config.json", "hidden_size", "hidden_size: 3"), "base_config.values.hidden_size 1:14");
  EXPECT_EQ(placed("dir/model.gguf", "hidden_size", "hidden_size: 3"), "base_config.values.hidden_size 1:14");
}

TEST(OverriddenKey, IsNotFoundForWhatTheModelsOwnFilesSay) {
  EXPECT_EQ(placed("dir/config.json", "rope_scaling.factor", "hidden_size: 3"), "");
  EXPECT_EQ(placed("dir/model.safetensors", "hidden_size", "hidden_size: 3"), "");
  EXPECT_EQ(placed("dir/generation_config.json", "hidden_size", "hidden_size: 3"), "");
  EXPECT_EQ(placed("dir/config.json", "", "hidden_size: 3"), "");
}

}  // namespace
}  // namespace easydel::elarge
