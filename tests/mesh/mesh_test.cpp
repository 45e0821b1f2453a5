// The grid of ranks and the layouts on it.
#include "easydel/mesh/mesh.h"

#include <gtest/gtest.h>

#include "easydel/mesh/layout.h"
#include "support/data.h"

namespace easydel::mesh {
namespace {

using test::refusal;

Mesh grid(std::vector<int64_t> sizes) { return Mesh(default_axes(), std::move(sizes)); }

TEST(Mesh, GivesTheOpenAxisTheRestOfTheRanks) {
  EXPECT_EQ(create_mesh({1, -1, 1, 2, 1}, default_axes(), 8).sizes(), (std::vector<int64_t>{1, 4, 1, 2, 1}));
  EXPECT_EQ(create_mesh({2, 2, 1, 2, 1}, default_axes(), 8).sizes(), (std::vector<int64_t>{2, 2, 1, 2, 1}));
  EXPECT_EQ(create_mesh({-1, 2}, {"dp", "tp"}, 6).describe(), "dp 3, tp 2");
  EXPECT_EQ(create_mesh({1, -2, 1, 1, 1}, default_axes(), 4).size("fsdp"), 4);  // numpy: any negative number
  EXPECT_EQ(Mesh().ranks(), 1);
}

TEST(Mesh, RefusesDimsThatDoNotFitTheRanksInNumpysWords) {
  EXPECT_EQ(refusal([] {
              create_mesh({1, 4, 1, 2, 1}, default_axes(), 2);
            }),
            "sharding_axis_dims: cannot reshape array of size 2 into shape (1,4,1,2,1)\n"
            "    the product of the dims must be the number of ranks, 2; start that many ranks with --nproc, or write "
            "-1 for one axis");
  EXPECT_EQ(refusal([] {
              create_mesh({1, -1, 1, 4, 1}, default_axes(), 2, "run.yaml:3:14: sharding.axis_dims");
            }),
            "run.yaml:3:14: sharding.axis_dims: cannot reshape array of size 2 into shape (1,newaxis,1,4,1)\n"
            "    the product of the dims must divide the number of ranks, 2; start that many ranks with --nproc, or "
            "write -1 for one axis");
  EXPECT_EQ(refusal([] {
              create_mesh({1, 1, 1, 1, 1}, default_axes(), 2);
            }),
            "sharding_axis_dims: cannot reshape array of size 2 into shape (1,1,1,1,1)\n"
            "    the product of the dims must be the number of ranks, 2; start that many ranks with --nproc, or write "
            "-1 for one axis");
  EXPECT_EQ(refusal([] {
              create_mesh({1, -1, 0, 1, 1}, default_axes(), 2).ranks();
            }),
            "sharding_axis_dims: cannot reshape array of size 2 into shape (1,newaxis,0,1,1)\n"
            "    the product of the dims must divide the number of ranks, 2; start that many ranks with --nproc, or "
            "write -1 for one axis");
}

TEST(Mesh, RefusesTwoOpenAxesAndNamesThatDoNotFit) {
  EXPECT_EQ(refusal([] {
              create_mesh({1, -1, -1, 1, 1}, default_axes(), 4);
            }),
            "sharding_axis_dims: can only specify one unknown dimension\n    write -1 for at most one axis");
  EXPECT_EQ(refusal([] {
              create_mesh({1, -1}, default_axes(), 4);
            }),
            "sharding_axis_dims: 2 dims for 5 axis names (dp, fsdp, ep, tp, sp)\n    give one dim for each axis name");
  EXPECT_EQ(refusal([] {
              create_mesh({1, -1}, {"dp", "dp"}, 4);
            }),
            "sharding_axis_dims: an axis name appears twice in (dp, dp)\n    give every axis its own name");
}

TEST(Mesh, CountsRanksRowMajor) {
  Mesh mesh = grid({2, 3, 1, 2, 1});
  EXPECT_EQ(mesh.coordinates(0), (std::vector<int64_t>{0, 0, 0, 0, 0}));
  EXPECT_EQ(mesh.coordinates(7), (std::vector<int64_t>{1, 0, 0, 1, 0}));
  EXPECT_EQ(mesh.coordinates(11), (std::vector<int64_t>{1, 2, 0, 1, 0}));
  EXPECT_EQ(mesh.group({"tp"}, 7), (std::vector<int64_t>{6, 7}));
  EXPECT_EQ(mesh.group({"fsdp"}, 7), (std::vector<int64_t>{7, 9, 11}));
  EXPECT_EQ(mesh.group({"dp", "fsdp"}, 7), (std::vector<int64_t>{1, 3, 5, 7, 9, 11}));
  EXPECT_EQ(mesh.group({}, 7), (std::vector<int64_t>{7}));
}

TEST(Mesh, FusesAxesInTheOrderTheyAreNamed) {
  Mesh mesh = grid({2, 3, 1, 1, 1});
  EXPECT_EQ(mesh.index({"dp", "fsdp"}, 4), 4);
  EXPECT_EQ(mesh.index({"fsdp", "dp"}, 4), 3);  // dp 1, fsdp 1
  EXPECT_EQ(mesh.group({"fsdp", "dp"}, 0), (std::vector<int64_t>{0, 3, 1, 4, 2, 5}));
}

TEST(Layout, KeepsADimensionWholeWhereTheAxesDoNotDivideIt) {
  Mesh mesh = grid({1, 2, 1, 4, 1});
  int64_t dropped = 0;
  EXPECT_EQ(resolve({{"fsdp", "sp"}, {"tp"}}, {6, 8}, mesh, &dropped), (PartitionSpec{{"fsdp"}, {"tp"}}));
  EXPECT_EQ(dropped, 0);
  EXPECT_EQ(resolve({{"fsdp"}, {"tp"}}, {6, 6}, mesh, &dropped), (PartitionSpec{{"fsdp"}, {}}));
  EXPECT_EQ(dropped, 1);
  // The whole entry is dropped, not only the axis that is too much.
  EXPECT_EQ(resolve({{"fsdp", "tp"}}, {4, 3}, mesh, &dropped), (PartitionSpec{{}, {}}));
  EXPECT_EQ(dropped, 2);
  EXPECT_EQ(resolve({{"dp"}, {"nowhere"}}, {3, 4}, mesh, &dropped), (PartitionSpec{{}, {}}));
  EXPECT_EQ(dropped, 3);
  EXPECT_EQ(resolve({{"tp"}, {"fsdp"}, {}}, {8}, mesh, &dropped), (PartitionSpec{{"tp"}}));  // longer: cut off
  EXPECT_EQ(dropped, 3);
}

TEST(Layout, SlicesOfAllRanksCoverTheTensorOnce) {
  Mesh mesh = grid({2, 2, 1, 2, 1});
  std::vector<int64_t> shape = {4, 6};
  PartitionSpec spec = resolve({{"fsdp", "tp"}, {"dp"}}, shape, mesh);
  std::vector<int> seen(24, 0);
  for (int64_t rank = 0; rank < mesh.ranks(); ++rank) {
    Slice s = slice_of(spec, shape, mesh, rank);
    for (int64_t i = 0; i < s.size[0]; ++i) {
      for (int64_t j = 0; j < s.size[1]; ++j) ++seen[(s.begin[0] + i) * 6 + s.begin[1] + j];
    }
  }
  EXPECT_EQ(seen, std::vector<int>(24, 1));
  EXPECT_EQ(slice_of(spec, shape, mesh, 7), (Slice{{3, 3}, {1, 3}}));
  EXPECT_EQ(describe(spec), "((fsdp, tp), dp)");
}

}  // namespace
}  // namespace easydel::mesh
