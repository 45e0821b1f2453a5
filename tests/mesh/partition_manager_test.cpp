// Words for dimensions that the recorded vectors (tests/probe/recorded_vectors_test.cpp) do not cover.
#include "easydel/mesh/partition_manager.h"

#include <gtest/gtest.h>

#include "support/data.h"

namespace easydel::mesh {
namespace {

const std::string train(train_mode), decode(decode_mode);

TEST(PartitionManager, RefusesAnUnknownWord) {
  const PartitionManager manager;
  EXPECT_EQ(test::refusal([&] { manager.resolve({{"__HEADS__"}}, train); }),
            "partition: Unknown semantic axis name: '__HEADS__'\n    did you mean '__HEAD__'?");
  EXPECT_EQ(test::refusal([&] { manager.resolve({{"__HEAD__"}}, 1); }),
            "partition: when using dynamic mode detection shape should be provided\n    give the shape, or a mode such "
            "as __train__");
  EXPECT_EQ(test::refusal([&] {
              manager.resolve({{"__HEAD__"}}, 2, std::vector<int64_t>{4, 1});
            }),
            "partition: the mode is dimension 2 of a shape with 2\n    name a dimension that is there");
  EXPECT_EQ(test::refusal([] { named_sharding("RowWize"); }),
            "partition: no layout is called 'RowWize'\n    did you mean 'RowWise'?");
}

TEST(PartitionManager, ADimensionOfOnePositionIsGeneration) {
  PartitionAxis axis;
  axis.decode_query_sequence_axis = "ep";
  const PartitionManager manager(axis);
  const auto spec = [&](int64_t length) {
    return manager.resolve(named_sharding("HiddenStateSharding"), std::vector<int64_t>{2, length, 8});
  };
  EXPECT_EQ(describe(spec(1)), "((fsdp, dp), ep, tp)");
  EXPECT_EQ(describe(spec(4)), "((fsdp, dp), sp, tp)");
}

TEST(PartitionManager, TakesWordsOfOnesOwn) {
  register_token("__ATTN_DP__", "data_parallel_axis", "expert_parallel_axis");
  const PartitionManager manager;
  EXPECT_EQ(describe(manager.resolve({{"__ATTN_DP__"}}, train)), "(dp)");
  EXPECT_EQ(describe(manager.resolve({{"__ATTN_DP__"}}, decode)), "(ep)");
  EXPECT_EQ(test::refusal([] { register_token("__ATTN_DP__", "head_axis"); }),
            "register_token: '__ATTN_DP__' is known already\n    pass replace to give it another meaning");
  register_token("__ATTN_DP__", "head_axis", std::nullopt, true);
  EXPECT_EQ(describe(manager.resolve({{"__ATTN_DP__"}}, decode)), "(tp)");
  EXPECT_EQ(test::refusal([] { register_token("__X__", "heads_axis"); }),
            "register_token: PartitionAxis has no field 'heads_axis'\n    see PartitionAxis::fields()");
}

TEST(PartitionAxis, KeysAreChecked) {
  EXPECT_EQ(test::refusal([] { partition_axis_of(parse_yaml("{batch_axes: dp}")); }),
            "partition_axis:1:2: batch_axes: no such key\n    did you mean 'batch_axis'?\n1 problem in partition_axis; "
            "nothing was run.");
  EXPECT_EQ(test::refusal([] { partition_axis_of(parse_yaml("[dp]")); }),
            "partition_axis: a list is not a partition axis\n    give keys as in {batch_axis: [fsdp, dp]}");
}

}  // namespace
}  // namespace easydel::mesh
