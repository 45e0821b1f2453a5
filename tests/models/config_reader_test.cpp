// Reading keys of config.json: missing keys, null, other types.
#include "easydel/models/config_reader.h"

#include <gtest/gtest.h>

#include "support/data.h"

namespace easydel::models {
namespace {

TEST(ConfigReader, AFlagThatIsNullIsFalseAndOneThatIsAbsentIsTheDefault) {
  const Value config = parse_yaml("{a: null, b: true, n: null, t: null}");
  const ConfigReader in(config, FilePlace{"config"});
  EXPECT_FALSE(in.boolean("a", true));
  EXPECT_TRUE(in.boolean("b", false));
  EXPECT_TRUE(in.boolean("c", true));
  EXPECT_EQ(in.integer("n", 7), 7);
  EXPECT_EQ(in.text("t", "x"), "x");
}

TEST(ConfigReader, AnotherTypeIsRefusedWithTheValue) {
  const Value config = parse_yaml("{a: 1, b: [x]}");
  const ConfigReader in(config, FilePlace{"config"});
  EXPECT_EQ(test::refusal([&] { in.boolean("a", true); }), "config: a: 1 is neither true nor false");
  EXPECT_EQ(test::refusal([&] { in.integer("b", 1); }), "config: b: [\"x\"] is not an integer");
}

TEST(ConfigReader, NumbersThatNothingCanBeComputedWithAreRefused) {
  const auto rope = [](const char* text) {
    const Value config = parse_yaml(text);
    return test::refusal([&] { ConfigReader(config, FilePlace{"config"}).rope(16, 64); });
  };
  EXPECT_EQ(rope("{rope_theta: -1.0}"), "config: rope_parameters.rope_theta: -1 is not a number above 0");
  EXPECT_EQ(rope("{rope_theta: .nan}"), "config: rope_theta: NaN is not a number");
  EXPECT_EQ(rope("{rope_parameters: {rope_type: linear, factor: 0}}"),
            "config: rope_parameters.factor: 0 is not a number above 0");
  EXPECT_EQ(rope("{rope_parameters: {rope_type: yarn, factor: 2, original_max_position_embeddings: -8}}"),
            "config: rope_parameters.original_max_position_embeddings: -8 is not a number above 0");
}

TEST(ConfigReader, AShareThatIsNullTurnsTheWholeHead) {
  const Value null = parse_yaml("{partial_rotary_factor: null}"), absent = parse_yaml("{rope_theta: 10000.0}");
  const RopeDefaults half = {.partial = 0.5, .reads_partial = true};
  EXPECT_EQ(ConfigReader(null, FilePlace{"config"}).rope(16, 64, half).dim, 16);
  EXPECT_EQ(ConfigReader(absent, FilePlace{"config"}).rope(16, 64, half).dim, 8);
}

}  // namespace
}  // namespace easydel::models
