// Sharded parameters: their place, and the handling of their gradients.
#include "easydel/nn/shards.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/full_like.h>
#include <gtest/gtest.h>

#include <cmath>

#include "easydel/nn/placement.h"
#include "support/ranks.h"

namespace easydel::nn {
namespace {

using collective::Team;
using mesh::PartitionSpec;
using test::Meeting;
using test::run_ranks;

std::shared_ptr<const Team> join(const Meeting& meeting, std::vector<int64_t> sizes) {
  collective::TeamOptions options;
  options.file_store = meeting.file;
  options.connect_seconds = options.timeout_seconds = 30;
  return Team::join(meeting.world, mesh::Mesh(mesh::default_axes(), std::move(sizes)), options);
}

Entry entry_of(Role role, Split split, std::vector<int64_t> shape, std::string easydel_path = "model/x/kernel") {
  Entry entry;
  entry.path = easydel_path;
  entry.easydel_path = std::move(easydel_path);
  entry.role = role;
  entry.split = split;
  entry.shape = std::move(shape);
  return entry;
}

Tensor numbers(const std::vector<int64_t>& shape) {
  int64_t count = 1;
  for (int64_t n : shape) count *= n;
  return at::arange(1, count + 1, at::kFloat).view(shape);
}

TEST(Placement, FollowsTheRoleInStorageOrder) {
  auto layout = [](Role role, Split split, std::vector<int64_t> shape) {
    return default_layout(entry_of(role, split, std::move(shape)));
  };
  EXPECT_EQ(layout(Role::weight, Split::output, {8, 4}), (PartitionSpec{{"tp"}, {"fsdp", "sp"}}));
  EXPECT_EQ(layout(Role::weight, Split::input, {8, 4}), (PartitionSpec{{"fsdp", "sp"}, {"tp"}}));
  EXPECT_EQ(layout(Role::weight, Split::vocabulary, {8, 4}), (PartitionSpec{{"tp"}, {"fsdp", "sp"}}));
  EXPECT_EQ(layout(Role::embedding, Split::vocabulary, {8, 4}), (PartitionSpec{{"fsdp", "sp"}, {"tp"}}));
  EXPECT_EQ(layout(Role::embedding, Split::none, {8, 4}), PartitionSpec{});
  EXPECT_EQ(layout(Role::norm, Split::none, {8}), PartitionSpec{});
  EXPECT_EQ(layout(Role::bias, Split::output, {8}), PartitionSpec{});
}

TEST(Placement, LetsARuleOverride) {
  run_ranks(4, [](const Meeting& meeting) {
    auto team = join(meeting, {1, 2, 1, 2, 1});
    mesh::PartitionRules rules({{"q_proj/kernel", {{"tp"}}}, {"odd", {{"fsdp"}, {"tp"}}}}, team->mesh());
    int64_t dropped = 0;
    Entry q = entry_of(Role::weight, Split::output, {8, 4}, "model/layers/0/self_attn/q_proj/kernel");
    place(q, team, rules, dropped);
    EXPECT_EQ(q.layout, (PartitionSpec{{}, {"tp"}}));
    EXPECT_EQ(q.slice, (Slice{{0, team->rank() % 2 * 2}, {8, 2}}));
    Entry k = entry_of(Role::weight, Split::output, {8, 4}, "model/layers/0/self_attn/k_proj/kernel");
    place(k, team, rules, dropped);
    EXPECT_EQ(k.layout, (PartitionSpec{{"tp"}, {"fsdp"}}));
    EXPECT_EQ(k.slice, (Slice{{team->rank() % 2 * 4, team->rank() / 2 * 2}, {4, 2}}));
    EXPECT_EQ(dropped, 0);
    Entry odd = entry_of(Role::weight, Split::output, {7, 4}, "odd");
    place(odd, team, rules, dropped);
    EXPECT_EQ(odd.layout, (PartitionSpec{{}, {"fsdp"}}));
    EXPECT_EQ(dropped, 1);
  });
}

// One parameter cut over both axes, one over fsdp only, one whole: the gradients are those of 4 ranks' rows.
TEST(Shards, ReduceGradientsOverTheRanksWithOtherRows) {
  run_ranks(4, [](const Meeting& meeting) {
    auto team = join(meeting, {2, 2, 1, 1, 1});
    ParameterTable table;
    int64_t dropped = 0;
    for (auto [name, shape] : {std::pair("cut", std::vector<int64_t>{4, 4}), {"odd", {3, 3}}, {"untouched", {2, 2}}}) {
      Entry entry = entry_of(Role::weight, Split::output, shape, name);
      place(entry, team, {}, dropped);
      entry.shard = team->cut(numbers(shape), entry.layout).clone();
      entry.shard.set_requires_grad(true);
      table.add(std::move(entry));
    }
    Entry &cut = table.entries()[0], &odd = table.entries()[1];
    EXPECT_EQ(cut.layout, (PartitionSpec{{}, {"fsdp"}}));
    cut.shard.mutable_grad() = at::full_like(cut.shard, float(team->rank() + 1)).detach();
    if (team->rank() == 2) odd.shard.mutable_grad() = at::full_like(odd.shard, 5).detach();
    reduce_gradients(table);
    // over dp alone: ranks 0 and 2, 1 and 3
    EXPECT_EQ(cut.shard.grad()[0][0].item<float>(), team->rank() % 2 == 0 ? 4.f : 6.f);
    EXPECT_EQ(odd.shard.grad()[2][2].item<float>(), 5.f);
    EXPECT_FALSE(table.entries()[2].shard.grad().defined());
    EXPECT_FLOAT_EQ(float(squared_gradient_norm(table)), 8 * 16.0 + 8 * 36.0 + 9 * 25.0);
    EXPECT_TRUE(whole_of(cut, cut.shard).equal(numbers({4, 4})));
  });
}

}  // namespace
}  // namespace easydel::nn
