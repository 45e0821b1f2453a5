// Meshes over hosts and meshes from strings, in addition to the recorded vectors; the whole texts of errors.
#include <gtest/gtest.h>

#include "easydel/mesh/expert_mesh.h"
#include "support/data.h"

namespace easydel::mesh {
namespace {

MeshShape over_hosts(std::vector<int64_t> dims, std::vector<int64_t> dcn, int64_t ranks, int64_t hosts) {
  return {.dims = std::move(dims), .names = default_axes(), .dcn_dims = std::move(dcn), .ranks = ranks, .hosts = hosts};
}

TEST(CreateMesh, AxesGrowOverHosts) {
  // The guide's example: 4 x 2 inside a node, 2 across.
  EXPECT_EQ(create_mesh(over_hosts({1, 4, 1, 2, 1}, {1, 2, 1, 1, 1}, 16, 2)).describe(),
            "dp 1, fsdp 8, ep 1, tp 2, sp 1");
  EXPECT_EQ(create_mesh(over_hosts({1, -1, 1, 2, 1}, {-1, 1, 1, 1, 1}, 64, 8)).describe(),
            "dp 8, fsdp 4, ep 1, tp 2, sp 1");
}

TEST(CreateMesh, RefusesHostsThatDoNotFit) {
  EXPECT_EQ(test::refusal([] {
              create_mesh(over_hosts({1, 4, 1, 2, 1}, {1, 3, 1, 1, 1}, 16, 2));
            }),
            "sharding_dcn_axis_dims: cannot reshape array of size 2 into shape (1,3,1,1,1)\n"
            "    the product of the dims must be the number of hosts, 2; or write -1 for one axis");
  EXPECT_EQ(test::refusal([] {
              create_mesh(over_hosts({1, -1, 1, 1, 1}, {-1, -1, 1, 1, 1}, 16, 2));
            }),
            "sharding_dcn_axis_dims: can only specify one unknown dimension\n    write -1 for at most one axis");
  EXPECT_EQ(
      test::refusal([] {
        create_mesh(over_hosts({1, -1, 1, 1, 1}, {1, 2}, 16, 2));
      }),
      "sharding_dcn_axis_dims: 2 dims for 5 axis names (dp, fsdp, ep, tp, sp)\n    give one dim for each axis name");
  EXPECT_EQ(test::refusal([] {
              create_mesh(over_hosts({1, -1, 1, 1, 1}, {1, 2, 1, 1, 1}, 15, 2));
            }),
            "sharding_dcn_axis_dims: 15 ranks on 2 hosts: not as many on each\n    start the same number of ranks on "
            "every host");
}

TEST(ParseMeshString, RefusesOtherStrings) {
  const auto refused = [](const char* text) {
    return test::refusal([&] { parse_mesh_string(text, {"dp", "tp"}, 8); });
  };
  EXPECT_EQ(refused("dp:2,pt:4"),
            "mesh 'dp:2,pt:4': Axis name 'pt' not found in provided names: [dp, tp]\n    did you mean 'tp'?");
  EXPECT_EQ(refused("dp:2"), "mesh 'dp:2': Not all axis names were used in 'axis_dims'\n    name each of dp, tp once");
  EXPECT_EQ(refused("2"), "mesh '2': Number of dimensions and names must match\n    give one size for each of dp, tp");
  EXPECT_EQ(refused("dp:two,tp:4"),
            "mesh 'dp:two,tp:4': 'two' is not a size of an axis\n    write whole numbers, as in dp:2,tp:-1");
  EXPECT_EQ(refused("dp:2,4"), "mesh 'dp:2,4': '4' has no name\n    write name:size for every axis, or sizes alone");
}

TEST(ExpertMesh, RefusesAxesThatServeTwice) {
  const Mesh mesh = create_mesh({1, 2, 2, 2, 1}, default_axes(), 8);
  PartitionAxis axis;
  axis.sequence_parallel_axis = "tp";
  EXPECT_EQ(test::refusal([&] { expert_mesh(mesh, axis); }),
            "partition_axis: cannot reshape array of size 8 into shape (1,8,2)\n"
            "    give data, fully sharded data, expert, tensor and sequence parallelism an axis of their own each");
  axis.sequence_parallel_axis = "qp";
  EXPECT_EQ(test::refusal([&] { expert_mesh(mesh, axis); }),
            "partition_axis: the mesh has no axis 'qp'\n    did you mean 'dp'?");
}

}  // namespace
}  // namespace easydel::mesh
