// How the ranks of an engine find each other: the first one listens, and the others connect to it. No torch in this
// header.
#pragma once

#include <memory>
#include <optional>

#include "easydel/esurge/esurge_config.h"
#include "easydel/esurge/rank_channel.h"
#include "easydel/esurge/rank_follower.h"
#include "easydel/esurge/rank_leader.h"
#include "easydel/mesh/mesh.h"
#include "easydel/mesh/world.h"

namespace easydel::collective {
class Team;
}

namespace easydel::esurge {

// This rank's end: one of the two.
struct RankEnd {
  std::shared_ptr<RankLeader> leader = {};        // on the first rank
  std::optional<RankConnection> connection = {};  // on another rank, to the first one
  FollowerOptions follower = {};
};

// `mesh`: of the engine, of which config.data_parallelism_axis divides the sequences. Collective.
// Without config.distributed_auth_token the first rank makes a token for this engine alone. UserErrors as RankListener
// and connect_to_first_rank.
RankEnd connect_ranks(const collective::Team& team, const mesh::Mesh& mesh, const EsurgeConfig& config,
                      const mesh::World& world);

}  // namespace easydel::esurge
