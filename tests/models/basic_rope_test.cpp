// Rotary positions of configurations: errors, three positions per token, parameters by layer type.
#include "easydel/models/basic_rope.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/stack.h>
#include <gtest/gtest.h>

#include "easydel/models/config_reader.h"
#include "support/data.h"

namespace easydel::models {
namespace {

Value config(const std::string& scaling) {
  return parse_yaml("{head_dim: 16, max_position_embeddings: 64, rope_scaling: " + scaling + "}");
}

TEST(BasicRope, RefusesWhatIsMissing) {
  const auto refused = [](const std::string& scaling) {
    return test::refusal([&] { get_basic_inv_frequencies(config(scaling)); });
  };
  EXPECT_EQ(refused("{rope_type: bogus}"),
            "config: rope_scaling.rope_type: unknown rope type 'bogus'\n"
            "    known: default, linear, dynamic, yarn, deepseek_yarn, llama3, longrope, mrope, proportional");
  EXPECT_EQ(refused("{rope_type: yarn, factor: 2}"),
            "config: rope_scaling.original_max_position_embeddings: is missing\n    rope type 'yarn' needs it");
  EXPECT_EQ(refused("{rope_type: linear}"), "config: rope_scaling.factor: is missing\n    rope type 'linear' needs it");
  EXPECT_EQ(refused("{rope_type: llama3, factor: 8}"),
            "config: rope_scaling.low_freq_factor: is missing\n    rope type 'llama3' needs it");
  EXPECT_EQ(test::refusal([] { get_basic_rope(config("{mrope_section: [5, 2, 2]}")); }),
            "config: rope_scaling.mrope_section: mrope_section is incompatible with rotary_dim. Expected "
            "sum(mrope_section)=8, got 9 for "
            "rotary_dim=16\n    the three sections are all pairs of rotated dimensions");
  EXPECT_EQ(test::refusal([] { get_basic_frequencies(parse_yaml("{head_dim: 16}")); }),
            "config: max_position_embeddings: is missing\n    rotary positions need it");
}

TEST(BasicRope, ATablesEndIsSaid) {
  const Value plain = config("null");
  const BasicRope rope = get_basic_rope(plain);
  const Tensor x = at::ones({2, 1, 16}), positions = at::arange(63, 65, at::TensorOptions().dtype(at::kLong));
  EXPECT_EQ(test::refusal([&] { rope(x, positions, get_basic_frequencies(plain)); }),
            "rope: position 64 is past the table's 64\n    make the table for more positions, or give none");
  EXPECT_TRUE(rope(x, positions - 1, get_basic_frequencies(plain)).allclose(rope(x, positions - 1), 1e-6, 1e-6));
}

TEST(BasicRope, ThreeEqualPositionsAreOne) {
  const Tensor x = at::ones({5, 2, 16}), one = at::arange(5, at::TensorOptions().dtype(at::kLong));
  for (const char* scaling : {"{mrope_section: [4, 2, 2]}", "{mrope_section: [4, 2, 2], mrope_interleaved: true}"}) {
    const BasicRope rope = get_basic_rope(config(scaling));
    EXPECT_TRUE(rope(x, at::stack({one, one, one})).equal(rope(x, one))) << scaling;
    EXPECT_FALSE(rope(x, at::stack({one, one, one * 2})).equal(rope(x, one))) << scaling;
  }
}

TEST(ConfigReader, AShareOfAWholeHeadMayTurn) {
  const Value nested = parse_yaml(
      "{rope_parameters: {full_attention: {rope_type: proportional, rope_theta: 1000000.0, partial_rotary_factor: "
      "0.25}, "
      "sliding_attention: {rope_type: default, rope_theta: 10000.0}}}");
  const ConfigReader reader(nested, FilePlace{"config.json"});
  const ops::RopeSpec full = reader.rope_of("full_attention", 16, 64, 10000.0);
  EXPECT_EQ(full.type, ops::RopeType::proportional);
  EXPECT_EQ(full.theta, 1000000.0);
  EXPECT_EQ(full.angles, 2);
  EXPECT_EQ(full.dim, 16);
  EXPECT_EQ(reader.rope_of("sliding_attention", 16, 64, 10000.0).type, ops::RopeType::standard);
}

}  // namespace
}  // namespace easydel::models
