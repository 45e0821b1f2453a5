// The recorded cases of operation_metadata, which describe in words what was done; and reading and writing of it.
#include "easydel/mesh/operation_metadata.h"

#include <gtest/gtest.h>

#include "support/data.h"

namespace easydel::mesh {
namespace {

TEST(OperationMetadata, FromConfigTakesEverythingFromIt) {
  const auto usual = OperationMetadata::from_config({});
  EXPECT_EQ(usual.runtime_dtype, "bfloat16");
  EXPECT_EQ(usual.runtime_softmax_dtype, "float32");
  EXPECT_EQ(usual.sequence_axis_name, "sp");
  EXPECT_EQ(usual.platform, "jax");
  EXPECT_EQ(usual.backend, "cpu");
  EXPECT_FALSE(usual.operation_configs);
  OperationDefaults config;
  config.sequence_axis_name = "zz";
  EXPECT_EQ(OperationMetadata::from_config(config).sequence_axis_name, "zz");
}

TEST(OperationMetadata, GivenAConfigTheSequenceAxisAndTheSoftmaxStayOnesOwn) {
  OperationDefaults config;
  config.sequence_axis_name = "zz";
  config.platform = "triton";
  const auto metadata = OperationMetadata::of("float32", config);
  EXPECT_EQ(metadata.sequence_axis_name, "sp");
  EXPECT_FALSE(metadata.runtime_softmax_dtype);
  EXPECT_EQ(metadata.platform, "triton");
}

TEST(OperationMetadata, NeedsAMeshFromSomewhere) {
  EXPECT_EQ(test::refusal([] { OperationMetadata::of("float32"); }),
            "OperationMetadata: You should pass 'mesh' to `OperationMetadata` or at least create that under mesh "
            "context manager\n"
            "    pass a mesh, make a MeshScope, or give the configuration");
  const MeshScope scope(create_mesh({1, 2, 1, 4, 1}, default_axes(), 8));
  {
    const MeshScope inner(create_mesh({2, 1, 1, 1, 1}, default_axes(), 2));
    EXPECT_EQ(OperationMetadata::of("float32").mesh().ranks(), 2);
  }
  EXPECT_EQ(OperationMetadata::of("float32").mesh().describe(), "dp 1, fsdp 2, ep 1, tp 4, sp 1");
}

TEST(OperationMetadata, SettingsOfAnOperationAreFoundByItsName) {
  OperationDefaults config;
  EXPECT_EQ(OperationMetadata::from_config(config).get_operation_config("flash_attn2"), nullptr);
  config.operation_configs = parse_yaml("{flash_attn2: 5}");
  const auto metadata = OperationMetadata::from_config(config);
  EXPECT_EQ(metadata.get_operation_config("flash_attn2")->as_int(), 5);
  EXPECT_EQ(metadata.get_operation_config("ring"), nullptr);
}

TEST(OperationMetadata, GoesThroughDictionariesAndJson) {
  OperationDefaults config;
  config.partition_axis.batch_axis = Axes{"dp", "fsdp", "sp"};
  config.operation_configs = parse_yaml("{ring: {block: 128}}");
  config.mesh = create_mesh({1, 2, 1, 4, 1}, default_axes(), 8);
  const auto metadata = OperationMetadata::from_config(config);
  EXPECT_EQ(OperationMetadata::from_dict(metadata.to_dict()), metadata);
  const auto back = OperationMetadata::from_json(metadata.to_json());
  EXPECT_EQ(back, metadata);
  EXPECT_EQ(back.mesh().size("tp"), 4);
  EXPECT_EQ(back.get_shardings(std::string(train_mode)), metadata.get_shardings(std::string(train_mode)));
}

TEST(OperationMetadata, ReplacesFieldsByTheirNames) {
  const auto metadata = OperationMetadata::from_config({});
  const auto other = metadata.replace(parse_yaml("{platform: triton, runtime_softmax_dtype: null}"));
  EXPECT_EQ(other.platform, "triton");
  EXPECT_FALSE(other.runtime_softmax_dtype);
  EXPECT_EQ(other.runtime_dtype, metadata.runtime_dtype);
  EXPECT_EQ(test::refusal([&] { metadata.replace(parse_yaml("{platfrom: jax}")); }),
            "OperationMetadata: has no field 'platfrom'\n    did you mean 'platform'?");
  EXPECT_EQ(test::refusal([&] { metadata.replace(parse_yaml("{mesh: {dp: 0}}")); }),
            "OperationMetadata: mesh: '0' is not a size of axis 'dp'\n    sizes are whole numbers from 1");
  EXPECT_EQ(test::refusal([] { OperationMetadata::from_dict(parse_yaml("{}")); }),
            "OperationMetadata: has no runtime_dtype\n    give at least {runtime_dtype: float32}");
}

TEST(OperationMetadata, FlatTokensAreCutByBatchAndTimeTogether) {
  const auto rules =
      OperationMetadata::from_config({}).get_shardings(std::string(train_mode), AttentionLayout::thd, false, 2);
  EXPECT_EQ(describe(rules.query), "((fsdp, dp, sp), tp, -)");
  EXPECT_EQ(describe(rules.key), "((fsdp, dp, sp), tp, -)");
  EXPECT_EQ(describe(rules.q_segment_ids), "((fsdp, dp, sp))");
  EXPECT_EQ(describe(*rules.softmax_aux), "(-, tp)");
  EXPECT_EQ(test::refusal([] { attention_layout_of("tbhd"); }),
            "get_shardings: Layout 'tbhd' is not implemented\n    known: bthd, bhtd, thd");
}

}  // namespace
}  // namespace easydel::mesh
