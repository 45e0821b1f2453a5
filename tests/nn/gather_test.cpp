// From shards to what a forward reads, and the regions that ranks compute together.
#include "easydel/nn/gather.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/full_like.h>
#include <gtest/gtest.h>

#include "easydel/nn/region.h"
#include "support/ranks.h"

namespace easydel::nn {
namespace {

std::shared_ptr<const collective::Team> team_of(const test::Meeting& meeting, std::vector<int64_t> sizes) {
  collective::TeamOptions options;
  options.file_store = meeting.file;
  options.connect_seconds = options.timeout_seconds = 30;
  return collective::Team::join(meeting.world, mesh::Mesh(mesh::default_axes(), std::move(sizes)), options);
}

Entry shard_of(const std::shared_ptr<const collective::Team>& team, const Tensor& whole, mesh::PartitionSpec layout) {
  Entry entry;
  entry.team = team;
  entry.layout = std::move(layout);
  entry.shard = team->cut(whole, entry.layout).clone();
  entry.shard.set_requires_grad(true);
  return entry;
}

// Axes of the mesh: dp, fsdp, ep, tp, sp.
TEST(Gather, JoinsShardsAndSumsTheGradientsOfRanksWithOtherRows) {
  test::run_ranks(4, [](const test::Meeting& meeting) {
    const auto team = team_of(meeting, {1, 2, 1, 2, 1});
    const Tensor whole = at::arange(16, at::kFloat).view({4, 4});
    Entry entry = shard_of(team, whole, {{"tp"}, {"fsdp"}});
    EXPECT_TRUE(is_gathered(entry));
    const Tensor read = gathered(entry);
    EXPECT_TRUE(read.equal(whole));
    // Ranks of fsdp have different rows, those of tp compute the same.
    (read * float(1 + team->rank() / 2)).sum().backward();
    EXPECT_TRUE(entry.shard.grad().equal(at::full_like(entry.shard, 3.0)));

    Entry part = shard_of(team, whole, {{"tp"}, {}});
    part.use = Use::part, part.use_dimension = 0;
    EXPECT_FALSE(is_gathered(part));
    EXPECT_TRUE(gathered(part).equal(part.shard));
    Entry cut = shard_of(team, whole, {{}, {"fsdp"}});
    cut.use = Use::part, cut.use_dimension = 0;
    EXPECT_TRUE(gathered(cut).equal(whole.narrow(0, team->rank() % 2 * 2, 2)));
  });
}

TEST(Region, IsDividedWhereTheRanksDivideItsUnits) {
  test::run_ranks(2, [](const test::Meeting& meeting) {
    const auto team = team_of(meeting, {1, 1, 1, 2, 1});
    EXPECT_FALSE(Region().divided());
    EXPECT_FALSE(Region(*team, {4, 3}).divided());
    const Region region(*team, {4, 6});
    EXPECT_TRUE(region.divided());
    EXPECT_EQ(region.parts(), 2);
    Tensor x = at::arange(3, at::kFloat);
    x.set_requires_grad(true);
    const Tensor y = region.leave(region.enter(x) * float(1 + team->rank()));
    EXPECT_TRUE(y.equal(x * 3));
    y.sum().backward();
    EXPECT_TRUE(x.grad().equal(at::full_like(x, 3.0)));
  });
}

}  // namespace
}  // namespace easydel::nn
