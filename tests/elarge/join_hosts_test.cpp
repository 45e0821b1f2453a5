// Which rank of several hosts a process is: what the keys must say, and what is said if they do not.
#include "easydel/elarge/join_hosts.h"

#include <gtest/gtest.h>

#include <functional>

#include "easydel/base/error.h"

namespace easydel::elarge {
namespace {

using esurge::DistributedRole;
using esurge::EsurgeConfig;

std::string error_of(const std::function<void(EsurgeConfig&)>& change, const mesh::World& world = {}) {
  EsurgeConfig config;
  config.distributed_mode = true;
  config.distributed_world_size = 2;
  config.distributed_rank = 1;
  config.distributed_advertise_addr = "127.0.0.1";
  change(config);
  try {
    check_hosts(config, world);
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

TEST(JoinHosts, SaysWhichKeyIsWrong) {
  EXPECT_EQ(error_of([](EsurgeConfig&) {}), "");
  EXPECT_EQ(error_of([](EsurgeConfig& c) { c.distributed_mode = false, c.distributed_world_size.reset(); }), "");
  EXPECT_EQ(error_of([](EsurgeConfig& c) { c.distributed_world_size.reset(); }),
            "esurge.distributed_world_size: is missing, and no launcher says how many ranks there are\n"
            "    give the number of hosts");
  EXPECT_EQ(error_of([](EsurgeConfig& c) { c.distributed_rank.reset(); }),
            "esurge.distributed_rank: is missing, and no launcher says which rank this is\n"
            "    give each host its own, from 0, or set distributed_role: coordinator on the first one");
  EXPECT_EQ(
      error_of([](EsurgeConfig& c) { c.distributed_role = DistributedRole::coordinator, c.distributed_rank.reset(); }),
      "");
  EXPECT_EQ(
      error_of([](EsurgeConfig& c) { c.distributed_role = DistributedRole::coordinator; }),
      "esurge.distributed_rank: is 1, but the coordinator is rank 0\n    leave it out, or change distributed_role");
  EXPECT_EQ(error_of([](EsurgeConfig& c) { c.distributed_role = DistributedRole::worker, c.distributed_rank = 0; }),
            "esurge.distributed_rank: 0 is the coordinator's, and distributed_role is worker\n"
            "    give it a rank from 1");
  EXPECT_EQ(error_of([](EsurgeConfig& c) { c.distributed_role = DistributedRole::worker, c.distributed_rank.reset(); }),
            "esurge.distributed_rank: is missing, and no launcher says which rank this is\n"
            "    give each host its own, from 0, or set distributed_role: coordinator on the first one");
  EXPECT_EQ(error_of([](EsurgeConfig& c) { c.distributed_rank = 2; }),
            "esurge.distributed_rank: 2 is not below distributed_world_size 2\n    ranks count from 0");
  EXPECT_EQ(error_of([](EsurgeConfig& c) { c.distributed_advertise_addr.reset(); }),
            "esurge.distributed_advertise_addr: is missing, so the ranks cannot find the first one\n"
            "    give the address of rank 0, on every host");
}

TEST(JoinHosts, DoesNotContradictALauncher) {
  mesh::World launched;
  launched.size = 4, launched.rank = 3;
  const auto nothing = [](EsurgeConfig& c) { c.distributed_world_size.reset(), c.distributed_rank.reset(); };
  EXPECT_EQ(error_of(nothing, launched), "");
  EXPECT_EQ(error_of([](EsurgeConfig&) {}, launched),
            "esurge.distributed_world_size: is 2, but a launcher started 4 ranks\n    leave it out");
  EXPECT_EQ(error_of([](EsurgeConfig& c) { c.distributed_world_size = 4; }, launched),
            "esurge.distributed_rank: is 1, but the launcher made this rank 3\n    leave it out");
}

}  // namespace
}  // namespace easydel::elarge
