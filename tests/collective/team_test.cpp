// Groups of ranks on a mesh, and their exchanges.
#include "easydel/collective/team.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "easydel/base/log.h"
#include "support/ranks.h"

namespace easydel::collective {
namespace {

using test::Meeting;
using test::run_ranks;

std::shared_ptr<const Team> join(const Meeting& meeting, std::vector<int64_t> sizes) {
  TeamOptions options;
  options.file_store = meeting.file;
  options.connect_seconds = options.timeout_seconds = 30;
  return Team::join(meeting.world, mesh::Mesh(mesh::default_axes(), std::move(sizes)), options);
}

std::vector<float> values(const Tensor& x) {
  Tensor flat = x.to(at::kFloat).contiguous();
  return {flat.const_data_ptr<float>(), flat.const_data_ptr<float>() + flat.numel()};
}

TEST(Team, OfOneRankNeedsNoConnection) {
  run_ranks(1, [](const Meeting&) {
    auto team = Team::alone();
    Tensor x = at::arange(4, at::kFloat);
    team->all().all_reduce(x);
    EXPECT_EQ(values(x), (std::vector<float>{0, 1, 2, 3}));
    EXPECT_TRUE(team->group({"tp"}).alone());
    EXPECT_EQ(values(team->all().all_gather(x, 0)).size(), 4u);
    EXPECT_EQ(team->batch_parts(), 1);
  });
}

TEST(Team, SumsOverTheRanksOfAnAxisOnly) {
  run_ranks(4, [](const Meeting& meeting) {
    auto team = join(meeting, {2, 1, 1, 2, 1});
    float rank = float(team->rank());
    Tensor x = at::full({3}, rank);
    team->group({"tp"}).all_reduce(x);
    EXPECT_EQ(values(x), std::vector<float>(3, rank < 2 ? 1.f : 5.f));
    Tensor y = at::full({3}, rank);
    team->group({"dp"}).all_reduce(y);
    EXPECT_EQ(values(y), std::vector<float>(3, team->rank() % 2 == 0 ? 2.f : 4.f));
    Tensor z = at::full({3}, rank);
    team->all().all_reduce(z, Reduce::max);
    EXPECT_EQ(values(z), std::vector<float>(3, 3.f));
  });
}

TEST(Team, GathersAndScattersAlongAnyDimension) {
  run_ranks(2, [](const Meeting& meeting) {
    auto team = join(meeting, {1, 2, 1, 1, 1});
    Group group = team->group({"fsdp"});
    Tensor whole = at::arange(12, at::kFloat).view({2, 2, 3}).transpose(0, 2);  // [3, 2, 2], not contiguous
    for (int64_t dimension : {1, 2}) {
      Tensor part = group.part(whole, dimension);
      EXPECT_EQ(part.size(dimension), 1);
      EXPECT_EQ(values(group.all_gather(part, dimension)), values(whole));
      EXPECT_EQ(values(group.reduce_scatter(whole, dimension)), values(part * 2));
    }
    Tensor sent = at::full({2, 2}, float(team->rank() + 1)).t();
    group.broadcast(sent, 1);
    EXPECT_EQ(values(sent), std::vector<float>(4, 2.f));
    Tensor nothing = at::zeros({0, 4});
    group.all_reduce(nothing);
    EXPECT_EQ(group.all_gather(nothing, 0).size(1), 4);
  });
}

TEST(Team, SumsBf16InFp32) {
  run_ranks(4, [](const Meeting& meeting) {
    auto team = join(meeting, {4, 1, 1, 1, 1});
    // In steps of bf16, 256 + 0.75 is 256 each time; the whole sum, 258.25, is nearest to 258.
    Tensor x = at::full({4}, team->rank() == 0 ? 256.f : 0.75f).to(at::kBFloat16);
    team->all().all_reduce(x);
    EXPECT_EQ(values(x), std::vector<float>(4, 258.f));
  });
}

TEST(Team, CutsATensorAndPutsItTogetherAgain) {
  run_ranks(4, [](const Meeting& meeting) {
    auto team = join(meeting, {1, 2, 1, 2, 1});
    Tensor whole = at::arange(48, at::kLong).view({4, 12});
    using Spec = mesh::PartitionSpec;
    for (const Spec& spec : {Spec{{"tp"}, {"fsdp"}}, Spec{{}, {"tp", "fsdp"}}, Spec{{"fsdp"}, {}}}) {
      auto layout = mesh::resolve(spec, whole.sizes().vec(), team->mesh());
      Tensor part = team->cut(whole, layout);
      EXPECT_TRUE(team->whole(part, layout).equal(whole)) << mesh::describe(layout);
    }
  });
}

TEST(Team, NamesTheCallsThatDoNotMatch) {
  run_ranks(2, [](const Meeting& meeting) {
    setenv("EASYDEL_DEBUG_COLLECTIVES", "1", 1);
    auto team = join(meeting, {1, 1, 1, 2, 1});
    Group group = team->group({"tp"});
    Tensor x = at::zeros({2, team->rank() == 0 ? 3 : 4});
    std::string said;
    try {
      group.all_reduce(x);
    } catch (const Bug& bug) {
      said = bug.what();
    }
    EXPECT_EQ(said,
              "collective: the ranks of tp:0,1 do not make the same call:\n"
              "    member 0: all_reduce of Float [2, 3], argument 0\n"
              "    member 1: all_reduce of Float [2, 4], argument 0");
    Tensor y = at::ones({2});  // the ranks are still in step
    group.all_reduce(y);
    EXPECT_EQ(values(y), (std::vector<float>{2, 2}));
  });
}

TEST(Team, EndsTheOthersWaitWhenARankDies) {
  auto exits = test::exits_of_ranks(2, [](const Meeting& meeting) {
    auto team = join(meeting, {1, 1, 1, 2, 1});
    Tensor x = at::ones({2});
    team->group({"tp"}).all_reduce(x);
    if (team->rank() == 1) _exit(7);
    std::string said = test::refusal([&] { team->group({"tp"}).all_reduce(x); });
    EXPECT_EQ(said.rfind("collective: all_reduce over tp:0,1 failed: ", 0), 0u) << said;
    for (const char* noise : {"third_party", ".cc:", "typically"})
      EXPECT_EQ(said.find(noise), std::string::npos) << said;
    EXPECT_NE(said.find("\n    if another rank stopped, see the first error that it printed"), std::string::npos)
        << said;
  });
  EXPECT_EQ(exits, (std::vector<int>{0, 7}));
}

TEST(Team, MakesAGroupAnewThatFailedOnOneRank) {
  run_ranks(2, [](const Meeting& meeting) {
    TeamOptions options;
    options.file_store = meeting.file;
    options.connect_seconds = 1, options.timeout_seconds = 30;
    if (meeting.world.rank == 1) options.fault = [](int attempt) { return attempt == 0; };
    auto team = Team::join(meeting.world, mesh::Mesh(mesh::default_axes(), {1, 1, 1, 2, 1}), options);
    Tensor x = at::ones({2});
    team->group({"tp"}).all_reduce(x);
    EXPECT_EQ(values(x), (std::vector<float>{2, 2}));
  });
}

TEST(Team, GivesUpAGroupThatFailsAgainAndAgain) {
  run_ranks(2, [](const Meeting& meeting) {
    TeamOptions options;
    options.file_store = meeting.file;
    options.connect_seconds = 1, options.timeout_seconds = 30;
    options.fault = [](int) { return true; };
    auto team = Team::join(meeting.world, mesh::Mesh(mesh::default_axes(), {1, 1, 1, 2, 1}), options);
    EXPECT_EQ(test::refusal([&] { team->group({"tp"}); }),
              "collective: group tp:0,1 of 2 ranks could not be created: a fault that was asked for\n    see the first "
              "error of the other ranks; on several machines GLOO_SOCKET_IFNAME names the network interface to use");
  });
}

TEST(Team, IsOnAnotherMeshWithALimitOfItsOwn) {
  run_ranks(2, [](const Meeting& meeting) {
    const auto team = join(meeting, {1, 1, 1, 2, 1});
    const auto other = team->on_mesh(mesh::Mesh(mesh::default_axes(), {2, 1, 1, 1, 1}), 0.5),
               third = team->on_mesh(mesh::Mesh(mesh::default_axes(), {1, 1, 1, 2, 1}), 30);
    EXPECT_TRUE(other->group({"tp"}).alone());
    for (const auto& [each, axis] : {std::pair(other, "dp"), {team, "tp"}, {third, "tp"}}) {
      const Tensor x = at::full({3}, float(each->rank() + 1));
      each->group({axis}).all_reduce(x);
      EXPECT_EQ(values(x), std::vector<float>(3, 3.f));
    }
    if (!team->first()) return void(sleep(2));
    const Tensor x = at::ones({1});
    EXPECT_NE(test::refusal([&] { other->all().all_reduce(x); }).find("imed out waiting 500ms"), std::string::npos);
  });
}

TEST(Team, ReportsMissingRanks) {
  run_ranks(1, [](const Meeting& meeting) {
    mesh::World world = meeting.world;
    world.rank = 1, world.size = 2, world.local_size = 2, world.master_port = 1;
    TeamOptions options;
    options.connect_seconds = 4;
    log::set_level(log::Level::info);
    testing::internal::CaptureStderr();
    std::string said = test::refusal([&] {
      Team::join(world, mesh::Mesh(mesh::default_axes(), {2, 1, 1, 1, 1}), options);
    });
    EXPECT_EQ(testing::internal::GetCapturedStderr(),
              "rank 1 of 2: waiting for rank 0 at 127.0.0.1:1 (MASTER_ADDR is not set)\n");
    EXPECT_EQ(said.rfind("collective: rank 1 of 2 does not meet the others at 127.0.0.1:1 within 4 s (", 0), 0u)
        << said;
  });
}

}  // namespace
}  // namespace easydel::collective
