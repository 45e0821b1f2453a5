#include "easydel/elarge/override_error.h"

#include <gtest/gtest.h>

namespace easydel::elarge {
namespace {

std::string placed(const std::string& text, const char* overrides) {
  const auto own = override_error(text, parse_yaml(overrides));
  if (!own) return "";
  return own->path + " " + std::to_string(own->place.line) + ":" + std::to_string(own->place.column) + " " + own->what +
         " / " + own->remedy;
}

TEST(OverrideError, IsPlacedWhereTheKeyWasWritten) {
  const std::string bogus = "dir/config.json: rope_scaling: rope_type: 'bogus' is not built\n    known: yarn";
  EXPECT_EQ(placed(bogus, "rope_scaling:\n  factor: 2\n  rope_type: bogus"),
            "base_config.values.rope_scaling.rope_type 3:14 'bogus' is not built / known: yarn");
  EXPECT_EQ(
      placed("dir/config.json: rope_scaling: factor: is missing\n    yarn needs it", "rope_scaling: {rope_type: yarn}"),
      "base_config.values.rope_scaling.factor 1:15 is missing / yarn needs it");
  EXPECT_EQ(placed("config.json: hidden_size: 3: too odd", "hidden_size: 3"),
            "base_config.values.hidden_size 1:14 3: too odd / ");
}

TEST(OverrideError, OfTheModelsOwnFileStaysThere) {
  EXPECT_EQ(placed("dir/config.json: rope_scaling: factor: is missing", "hidden_size: 3"), "");
  EXPECT_EQ(placed("dir/model.safetensors: hidden_size: is short", "hidden_size: 3"), "");
  EXPECT_EQ(placed("dir/config.json is missing", "hidden_size: 3"), "");
}

}  // namespace
}  // namespace easydel::elarge
