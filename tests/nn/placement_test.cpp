// Which part of a parameter a rank holds.
#include "easydel/nn/placement.h"

#include <gtest/gtest.h>

namespace easydel::nn {
namespace {

Entry entry_of(Role role, Split split, std::vector<int64_t> shape) {
  Entry entry;
  entry.path = "m.weight", entry.easydel_path = "m/kernel";
  entry.role = role, entry.split = split, entry.shape = std::move(shape);
  return entry;
}

TEST(Placement, CutsWeightsByTheirRoleAndSplit) {
  const auto layout = [](Role role, Split split, std::vector<int64_t> shape) {
    return default_layout(entry_of(role, split, std::move(shape)));
  };
  // Unresolved, in storage order: [out, in].
  EXPECT_EQ(layout(Role::weight, Split::output, {8, 4}), mesh::storage_order(mesh::column_wise(), 2));
  EXPECT_EQ(layout(Role::weight, Split::input, {8, 4}), mesh::storage_order(mesh::row_wise(), 2));
  EXPECT_EQ(layout(Role::weight, Split::vocabulary, {8, 4}), layout(Role::weight, Split::output, {8, 4}));
  EXPECT_NE(layout(Role::weight, Split::output, {8, 4}), layout(Role::weight, Split::input, {8, 4}));
  EXPECT_EQ(layout(Role::weight, Split::output, {2, 8, 4}), mesh::storage_order(mesh::expert_column_wise(), 3));
  EXPECT_EQ(layout(Role::weight, Split::input, {2, 8, 4}), mesh::storage_order(mesh::expert_row_wise(), 3));
  EXPECT_EQ(layout(Role::embedding, Split::vocabulary, {8, 4}), mesh::vocabulary_wise());
  for (const Role role : {Role::norm, Role::bias, Role::other}) EXPECT_TRUE(layout(role, Split::output, {8}).empty());
  EXPECT_TRUE(layout(Role::weight, Split::none, {8, 4}).empty());
  EXPECT_TRUE(layout(Role::embedding, Split::none, {8, 4}).empty());
}

TEST(Placement, OfOneRankIsTheWhole) {
  Entry entry = entry_of(Role::weight, Split::output, {8, 4});
  int64_t dropped = 0;
  const auto team = collective::Team::alone();
  place(entry, team, mesh::PartitionRules({}, team->mesh()), dropped);
  EXPECT_EQ(dropped, 0);
  EXPECT_EQ(entry.slice.begin, (std::vector<int64_t>{0, 0}));
  EXPECT_EQ(entry.slice.size, (std::vector<int64_t>{8, 4}));
  EXPECT_EQ(entry.layout.size(), 2u);
}

}  // namespace
}  // namespace easydel::nn
