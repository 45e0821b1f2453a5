// The ranks of an engine over several hosts where no launcher started them: each host's process is told its own rank by
// the keys esurge.distributed_*. No torch.
#pragma once

#include "easydel/esurge/esurge_config.h"
#include "easydel/mesh/world.h"

namespace easydel::elarge {

// With distributed_mode: which rank this process is, as mesh::read_world() says it from now on. Without a launcher the
// first rank listens at the control port, the others prove the token there, and then the environment variables of a
// launcher are set; so it must be called while the process has one thread. UserErrors that name the key: one is
// missing, contradicts another or a launcher, or what RankListener and connect_to_first_rank refuse. Does nothing
// otherwise, nor when it is called again.
void join_hosts(const esurge::EsurgeConfig& config);

// The checks of it alone, for `world` as the environment has it.
void check_hosts(const esurge::EsurgeConfig& config, const mesh::World& world);

}  // namespace easydel::elarge
